"""Step-by-step simulators that the closed forms are held against: real blocks move over explicit links.

`network` is the engine, `jobs` says what each collective must achieve, the other modules are schedules
(who sends which blocks to whom in which step) and the machines that they run on. Nothing here knows a
closed form: times and loads are exact fractions that come out of moving the blocks.
"""
