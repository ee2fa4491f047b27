"""The collective operations by name: what each does and what its size counts."""

from __future__ import annotations

from costmodel.errors import InputError

OPERATIONS = {
    "all-gather": "every rank gets all shards",
    "reduce-scatter": "every rank gets its part of the sum",
    "all-reduce": "every rank gets the sum",
    "all-to-all": "every rank sends a block to every rank",
    "broadcast": "one rank's message to all",
    "reduce": "the sum to one rank",
    "gather": "all shards to one rank",
    "scatter": "one rank's shards to all",
    "send-recv": "one message between two places",
    "dispatch": "tokens to the ranks of their experts",
    "combine": "their results back",
    "host-load": "from host memory to chip memory",
    "barrier": "all ranks wait for each other",
}
_ARRAY = "Size is the whole gathered or reduced array (nccl-tests' convention)."
_ROOT = "Size is the root's whole buffer."
_MESSAGE = "Size is the message."
_COPIES = "Size is a rank's tokens with one copy for each expert."
PAYLOADS = {
    "all-gather": _ARRAY,
    "reduce-scatter": _ARRAY,
    "all-reduce": _ARRAY,
    "all-to-all": "Size is one rank's send buffer (nccl-tests' convention); over all devices it is as many times more.",
    "broadcast": _MESSAGE,
    "reduce": _MESSAGE,
    "gather": _ROOT,
    "scatter": _ROOT,
    "send-recv": _MESSAGE,
    "dispatch": _COPIES,
    "combine": _COPIES,
    "host-load": "Size is what one chip receives; all chips of a host load at once.",
    "barrier": "A barrier carries nothing.",
}
"""What the size of each operation counts."""

ROUTED = ("dispatch", "combine")
EXCHANGES = ("all-to-all", *ROUTED)
"""Operations in which every rank sends to every other, or to many."""
PLACES = ("send-recv", "host-load")


def operation_named(text: str) -> str:
    """The operation that `text` names, whatever its hyphens; raises InputError with the nearest one."""
    by_letters = {name.replace("-", ""): name for name in OPERATIONS} | {"sendrecv": "send-recv", "p2p": "send-recv"}
    found = by_letters.get(text.lower().replace("-", "").replace("_", ""))
    if found is None:
        raise InputError.unknown("operation", text, OPERATIONS)
    return found
