"""What nccl-tests prints, as versions and launchers differ, read or refused with file and line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from costmodel.errors import InputError
from costmodel.studies.calibration import nccl_tests
from tests.studies.calibration.synthetic import COLUMNS, FOOTER, HEADER, ranks

LINE = "     1048576        262144     float     sum      -1    45.21   23.19   40.59      0    44.80   23.41   40.96      0\n"
WHOLE = HEADER + ranks(8) + COLUMNS + LINE + LINE.replace("1048576", "2097152") + FOOTER

OLD = """# nThread 1 nGpus 8 minBytes 8 maxBytes 134217728 step: 2(factor) warmup iters: 5 iters: 20 validation: 1
#
# Using devices
#   Rank  0 Pid   1234 on  hostname device  0 [0x1b] Tesla V100-SXM2-32GB
#   Rank  1 Pid   1234 on  hostname device  1 [0x1c] Tesla V100-SXM2-32GB
#
#                                                     out-of-place                       in-place
#       size         count    type   redop     time   algbw   busbw  error     time   algbw   busbw  error
#        (B)    (elements)                     (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
     1048576        262144   float     sum    35.83   29.26   29.26  0e+00    35.52   29.52   29.52  0e+00
"""


def test_a_whole_log():
    log = nccl_tests.read(WHOLE, "all_reduce_perf.txt")
    first, second = log.results
    assert (first.operation, first.size, first.ranks, first.hosts) == ("all-reduce", 2**20, 8, 1)
    assert first.time_s == pytest.approx(45.21e-6)
    assert first.in_place_s == pytest.approx(44.80e-6)
    assert second.where == "all_reduce_perf.txt:17"
    assert log.notes == ()
    assert nccl_tests.knows(WHOLE)
    assert nccl_tests.spread(log.results) == pytest.approx(44.80 / 45.21)


def test_an_old_version_has_other_columns():
    (one,) = nccl_tests.read(OLD, "log.txt").results
    assert (one.operation, one.ranks, one.time_s) == ("all-reduce", 2, pytest.approx(35.83e-6))


@pytest.mark.parametrize("prefix", ["[1,0]<stdout>:", "0: "])
def test_labels_of_launchers_are_taken_off(prefix):
    labelled = "".join(prefix + line for line in WHOLE.splitlines(keepends=True))
    assert nccl_tests.knows(labelled)
    assert len(nccl_tests.read(labelled, "x.txt").results) == 2


def test_lines_of_others_between_the_results_are_passed_over():
    noisy = WHOLE.replace(LINE, "node1:77:77 [0] NCCL INFO comm 0x55 rank 0 nranks 8\nWarning: 3 of 8\n" + LINE, 1)
    assert len(nccl_tests.read(noisy, "x.txt").results) == 2


def test_several_runs_after_each_other():
    other = HEADER + ranks(16) + COLUMNS + LINE.replace("sum", "none").replace("40.59", "21.74") + FOOTER
    text = "$ ./all_reduce_perf -b 1M -e 2M\n" + WHOLE + "$ ./alltoall_perf -b 1M -e 1M\n" + other
    found = nccl_tests.read(text, "both.log").results
    assert [(one.operation, one.ranks, one.hosts) for one in found] == [
        ("all-reduce", 8, 1),
        ("all-reduce", 8, 1),
        ("all-to-all", 16, 2),
    ]


def test_a_log_that_is_cut_off_loses_its_last_line_and_says_so():
    cut = WHOLE[: WHOLE.rindex("45.21") + 2]
    log = nccl_tests.read(cut, "cut.txt")
    assert len(log.results) == 1
    assert log.notes == ("cut.txt:17 is cut off and left out",)


def test_wrong_results_and_empty_ones_are_left_out():
    wrong = LINE.replace("40.59      0", "40.59      7")
    empty = LINE.replace(" 1048576        262144", "       0             0").replace("45.21", " 0.13")
    log = nccl_tests.read(HEADER + ranks(8) + COLUMNS + empty + LINE + wrong, "x.txt")
    assert len(log.results) == 1
    assert log.notes == ("x.txt: 1 results that nccl-tests found wrong are left out",)


@pytest.mark.parametrize(
    ("name", "operation"),
    [
        ("alltoall_perf-8.out", "all-to-all"),
        ("runs/all_gather.txt", "all-gather"),
        ("node3-reduce-scatter.log", "reduce-scatter"),
        ("gather_perf.txt", "gather"),
    ],
)
def test_the_name_of_the_file_says_what_ran(name, operation):
    text = WHOLE.replace(" sum ", "none ")
    assert nccl_tests.read(text, name).results[0].operation == operation


def test_what_is_asked_for_comes_before_all_else():
    assert nccl_tests.read(WHOLE, "alltoall_perf.txt", "broadcast").results[0].operation == "broadcast"


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("45.21   23.19   40.59      0    44.80   23.41   40.96      0\n     2", "45.21\n     2", "x.txt:16: 6 values"),
        ("45.21", "fast", "x.txt:16: the time is 'fast'"),
        ("45.21", "nan", "x.txt:16: the time is 'nan'"),
        ("45.21", "-1.0", "x.txt:16: the time is '-1.0'"),
        (" sum ", "none ", "x.txt:16: the output does not say which operation ran: name it with --operation"),
        ("    time   algbw", "    span   algbw", "x.txt:16: the header above names no column `time`"),
    ],
)
def test_what_cannot_be_read_is_named_by_file_and_line(old, new, sentence):
    with pytest.raises(InputError) as raised:
        nccl_tests.read(WHOLE.replace(old, new), "x.txt")
    assert str(raised.value).startswith(sentence)


def test_a_header_without_results():
    with pytest.raises(InputError, match="no result below it"):
        nccl_tests.read(HEADER + COLUMNS, "x.txt")


@given(st.text(alphabet="#0123456789 .-nfasumeize\n\t", max_size=400), st.booleans())
def test_no_text_ends_in_anything_but_results_or_a_sentence(text, under_header):
    try:
        found = nccl_tests.read((COLUMNS if under_header else "") + text, "x.txt", "all-reduce")
    except InputError as error:
        assert "\n" not in str(error)
    else:
        assert all(one.time_s > 0 and one.size >= 1 for one in found.results)
