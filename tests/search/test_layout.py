"""The grammar of layouts: what prints is what is read, and what cannot be read is said in one sentence."""

import re
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from costmodel.errors import InputError
from costmodel.search.layout import (
    CONTEXTS,
    DISPATCH,
    KEYS,
    OFFLOADS,
    OVERLAPS,
    RESHARDS,
    SCHEDULES,
    Layout,
    parse_layout,
)
from costmodel.search.recomputation import RECOMPUTE

degrees = st.integers(1, 64)
layouts = st.builds(
    Layout,
    tp=degrees,
    cp=st.integers(1, 16),
    cp_type=st.sampled_from(CONTEXTS),
    pp=degrees,
    dp=st.integers(1, 2**20),
    virtual_stages=degrees,
    micro_batch_size=degrees,
    zero=st.integers(0, 3),
    reshard=st.sampled_from(RESHARDS),
    sequence_parallel=st.booleans(),
    recompute=st.sampled_from(
        (*RECOMPUTE, "full/2", "light/16", "core_attn+mlp", "layernorm+moe/2", "full-uniform-3", "full-block-12")
    ),
    schedule=st.sampled_from(SCHEDULES),
    group=st.integers(0, 64),
    first=st.integers(0, 8),
    last=st.integers(0, 8),
    p2p=st.sampled_from(("", "overlap", "blocking")),
    offload=st.sampled_from((*OFFLOADS, "optimizer/nvme", "optimizer+weights/nvme")),
    placement=st.sampled_from(("tp-dp-pp", "tp-pp-dp", "domain:tp8/network:dp16.pp4", "x:tp4.dp4/y:dp20/z:dp28")),
)


@given(layouts)
def test_the_text_printed_is_the_text_taken_back(layout):
    assert parse_layout(str(layout), layout.chips) == layout


@given(layouts, degrees, degrees, st.sampled_from(OVERLAPS), st.sampled_from(DISPATCH))
def test_what_it_says_of_experts_is_taken_back(layout, ep, etp, overlap, dispatch):
    """With ep=1 and etp=1 beside tp=2 too: tensor-parallel ranks would share the experts if nothing were said."""
    asked = replace(layout, ep=ep, etp=etp, ep_overlap=overlap, dispatch=dispatch, has_experts=True)
    assert parse_layout(str(asked), asked.chips, experts=True) == asked


@given(layouts, st.randoms())
def test_words_come_in_any_order(layout, random):
    words = str(layout).split()
    random.shuffle(words)
    assert parse_layout("  ".join(words), layout.chips) == layout


@given(st.sampled_from((1, 2, 4, 8)), st.sampled_from((1, 2, 4)), st.integers(1, 100))
def test_dp_is_what_is_left_of_the_chips(tp, pp, dp):
    found = parse_layout(f"tp={tp} pp={pp}", tp * pp * dp)
    assert (found.tp, found.pp, found.dp) == (tp, pp, dp)
    assert found.chips == tp * pp * dp


def test_defaults_are_those_that_the_keys_tell():
    assert str(parse_layout("", 8)) == (
        "tp=1 pp=1 dp=8 v=1 mbs=1 zero=1 sp=0 recompute=none schedule=1f1b placement=tp-dp-pp"
    )
    assert str(parse_layout("tp=2 pp=2 v=4", 4)) == (
        "tp=2 pp=2 dp=1 v=4 mbs=1 zero=0 sp=1 recompute=none schedule=interleaved placement=tp-dp-pp"
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tp", "'tp' is not key=value; the keys are tp, cp, pp, dp"),
        ("tp:8", "is not key=value"),
        ("tp=", "'tp=' is not key=value"),
        ("tp=8 tp=4", "tp is given twice"),
        ("tpp=8", "unknown layout key 'tpp': did you mean"),
        ("xyzzy=8", "choose from"),
        ("tp=0", "tp=0 must be a whole number from 1 to"),
        ("tp=-8", "must be a whole number"),
        ("tp=8.0", "must be a whole number"),
        ("tp=1e3", "must be a whole number"),
        ("tp=nan", "must be a whole number"),
        ("tp=٨", "must be a whole number"),
        ("tp=99999999999999999999999", "must be a whole number"),
        ("pp=" + "9" * 5000, "must be a whole number"),
        ("mbs=00000000010000000000000", "must be a whole number"),
        ("zero=4", "zero=4 is not known; choose from 0, 1, 2, 3"),
        ("sp=yes", "sp=yes is not known; choose from 0, 1"),
        ("recompute=selectiv", "did you mean selective?"),
        ("recompute=ful/2", "did you mean full?"),
        ("offload=optimiser", "did you mean optimizer?"),
        ("offload=optimizer/ssd", "a label other than none, and /host or /nvme"),
        ("offload=none/nvme", "a label other than none"),
        ("offload=optimizer/", "a label other than none"),
        ("recompute=none/2", "recompute=none/2 is not known; a kind other than none"),
        ("recompute=full/1", "recompute=full/1 is not known"),
        ("recompute=full/", "recompute=full/ is not known"),
        ("recompute=full/2/2", "recompute=full/2/2 is not known"),
        ("recompute=core_attn+mpl", "'mpl' in recompute=core_attn+mpl is not known; did you mean mlp?"),
        ("recompute=core_atn", "did you mean core_attn?"),
        ("recompute=none+mlp", "'none' in recompute=none+mlp is not known; choose from core_attn, layernorm"),
        ("recompute=mlp+", "'' in recompute=mlp+ is not known"),
        ("recompute=mlp+mlp", "recompute=mlp+mlp names mlp twice"),
        ("recompute=moe+moe_act", "moe_act is a part of moe, which runs it again already"),
        ("recompute=moe+layernorm+shared_experts", "shared_experts is a part of moe"),
        ("recompute=mlp/1", "recompute=mlp/1 is not known"),
        ("recompute=everything-there-is", "full-uniform-N, full-block-N, or modules joined by +: core_attn,"),
        ("recompute=" + "x" * 500, "is not known; choose from none, norms"),
        ("recompute=full-uniform", "full-uniform-N keeps the input of every N layers"),
        ("recompute=full-block-0", "N from 1 to 9999"),
        ("recompute=full-blok-2", "full-block-N runs the first N layers"),
        ("recompute=full-uniform-2/2", "recompute=full-uniform-2/2 is not known"),
        ("schedule=gpip", "did you mean gpipe?"),
        ("schedule=fastest", "choose from 1f1b, interleaved, gpipe, breadth-first"),
        ("group=0", "group=0 must be a whole number"),
        ("tp=8 dp=4", "tp 8 x pp 1 x dp 4 = 32, not the 64 chips; dp=8 would fill them"),
        ("tp=8 pp=3", "nearest: tp=8 pp=2 dp=4"),
        ("tp=7", "tp=7 does not divide them, tp=4 does"),
        ("tp=128", "not the 64 chips"),
    ],
)
def test_what_cannot_be_read_is_said(text, said):
    with pytest.raises(InputError) as caught:
        parse_layout(text, 64)
    message = str(caught.value)
    assert said in message
    assert len(message) < 300
    assert "\n" not in message


@given(st.text(max_size=60))
@example("tp=8\x00")
@example("tp=\ud800")
@example("=8")
def test_any_text_is_read_or_refused_in_a_sentence(text):
    try:
        read = parse_layout(text, 64).chips == 64
    except InputError as error:
        read = "layout" in str(error)
    assert read


@given(st.integers(1, 512), st.integers(1, 40), st.integers(1, 6), st.integers(1, 40), st.integers(1, 40))
def test_a_remedy_for_degrees_that_do_not_multiply_out_does(chips, tp, cp, pp, dp):
    try:
        parse_layout(f"tp={tp} cp={cp} pp={pp} dp={dp}", chips)
    except InputError as error:
        remedy = str(error).split(";")[1]
        words = dict(re.findall(r"(tp|cp|pp|dp)=(\d+)", re.split(r" does not divide [a-z0-9= ]+,", remedy)[-1]))
        given = {"tp": tp, "cp": cp, "pp": pp, "dp": dp} if "dp" in words else {"tp": tp} if "cp" in words else {}
        wanted = " ".join(f"{key}={value}" for key, value in (given | words).items())
        assert parse_layout(wanted, chips).chips == chips
    else:
        assert tp * cp * pp * dp == chips


EVERY = "cp=2 ep=2 ep_overlap=shared dispatch=rank group=2 shard=2 reshard=backward first=3 last=2 p2p=overlap offload=optimizer/nvme"


def test_every_key_is_described():
    assert set(KEYS) == {word.split("=")[0] for word in str(parse_layout(EVERY, 2)).split()}
    assert min(map(len, KEYS.values())) > 10
