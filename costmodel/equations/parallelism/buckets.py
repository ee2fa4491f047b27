"""Gradients reduced in buckets while the backward pass still runs: what shows of it, for any list of buckets, and the best size.

Buckets fill in the reverse order of the weights, so that the last layers are reduced first. They go over the wire one after
another, each when it is full and the one before is through. With accumulation only the last micro-batch of a step reduces
(`no_sync`), so that the backward pass here is that of one micro-batch. The streams are ideal: neither slows the other.
"""

from costmodel.equations.axes import BUCKET
from costmodel.symbolic import (
    Chapter,
    bytes_,
    bytes_per_second,
    count,
    equation,
    floor_divide,
    given,
    largest,
    part,
    seconds,
    select,
    smallest,
    square_root,
    worst,
)


class BucketList(Chapter):
    """Any list of buckets, in the order in which they fill."""

    gradient_bytes = given(bytes_, "gradients of a rank")
    backward_compute = given(seconds, "backward pass of the last micro-batch")
    filled = given(bytes_, "gradients that are there when this bucket is full", BUCKET)
    still_to_reduce = given(seconds, "reductions of this bucket and of all that follow", BUCKET)

    ready = equation(seconds, backward_compute * filled / gradient_bytes, "when the bucket is full")
    exposed = equation(
        seconds,
        worst(ready + still_to_reduce, BUCKET) - backward_compute,
        "what shows after the backward pass: the wire is busy without a gap from some bucket on",
    )


class EqualBuckets(Chapter):
    """All gradients in buckets of one size."""

    gradient_bytes = given(bytes_, "gradients of a rank")
    backward_compute = given(seconds, "backward pass of the last micro-batch")
    buckets = given(count, "buckets (B)")
    start = given(seconds, "of one reduction, whatever its size")
    rate = given(bytes_per_second, "gradients reduced a second, once a reduction runs")

    reduction = equation(seconds, start + gradient_bytes / buckets / rate, "of one bucket")
    exposed = equation(
        seconds,
        largest(reduction, buckets * reduction - backward_compute * (1 - 1 / buckets)),
        "the last bucket, or all of them after the first is full",
    )


class BestBuckets(Chapter):
    """How many buckets of one size show least."""

    gradient_bytes = given(bytes_, "gradients of a rank")
    backward_compute = given(seconds, "backward pass of the last micro-batch")
    start = given(seconds, "of one reduction, whatever its size")
    rate = given(bytes_per_second, "gradients reduced a second, once a reduction runs")

    balanced_buckets = equation(
        count,
        (backward_compute - gradient_bytes / rate) / start,
        "where the last bucket shows as much as all of them behind the first: more only cost starts",
    )
    starved_buckets = equation(
        count, square_root(backward_compute / start), "where a later first bucket and more starts cost the same"
    )
    buckets = equation(count, largest(1, balanced_buckets, starved_buckets), "buckets that show least")
    bucket = equation(bytes_, gradient_bytes / buckets, "their size")


class Buckets(Chapter):
    """PyTorch's DistributedDataParallel: a small first bucket, then buckets of a cap, and what is left over.

    A reduction of S bytes takes a start and S over a rate: as the whole gradient and one bucket of the cap take in the model.
    """

    gradient_bytes = given(bytes_, "gradients of a rank")
    backward_compute = given(seconds, "backward pass of the last micro-batch")
    micro_batches = given(count, "micro-batches of a step")
    first_bucket_cap = given(bytes_, "of the first bucket", owner="assumption")
    bucket_cap = given(bytes_, "of all others", owner="assumption")
    whole_reduction = given(seconds, "all-reduce of all gradients at once")
    bucket_reduction = given(seconds, "all-reduce of one bucket of the cap")
    launch_latency = given(seconds, "launch of one kernel", owner="chip")

    rate = equation(
        bytes_per_second,
        select(
            gradient_bytes > bucket_cap,
            (gradient_bytes - bucket_cap) / (whole_reduction - bucket_reduction),
            gradient_bytes / whole_reduction,
        ),
        "gradients reduced a second, once a reduction runs",
    )
    start = equation(
        seconds, largest(launch_latency, bucket_reduction - bucket_cap / rate), "of one reduction, whatever its size"
    )
    first_bucket = equation(bytes_, smallest(first_bucket_cap, gradient_bytes), "the bucket that fills first")
    full_buckets = equation(
        count, floor_divide(gradient_bytes - first_bucket, bucket_cap), "buckets of the cap after it"
    )
    last_bucket = equation(bytes_, gradient_bytes - first_bucket - full_buckets * bucket_cap, "what is left over")
    buckets = equation(count, 1 + full_buckets + select(last_bucket > 0, 1, 0), "in all")
    first_time = equation(seconds, start + first_bucket / rate, "its reduction")
    full_time = equation(seconds, start + bucket_cap / rate, "reduction of one bucket of the cap")
    last_time = equation(
        seconds, select(last_bucket > 0, start + last_bucket / rate, 0), "reduction of what is left over"
    )
    reduced = equation(
        seconds, first_time + full_buckets * full_time + last_time, "all reductions of a step, hidden or not"
    )

    # The wire is busy without a gap from one bucket on. Between buckets of one size what shows is linear in which one, so that
    # only the first bucket, the first and the last of the cap, and the one left over can be it.
    from_first = equation(
        seconds, reduced - backward_compute * (1 - first_bucket / gradient_bytes), "busy from the first bucket on"
    )
    from_second = equation(
        seconds,
        full_buckets * full_time
        + last_time
        - backward_compute * (1 - (first_bucket + smallest(1, full_buckets) * bucket_cap) / gradient_bytes),
        "busy from the first bucket of the cap on",
    )
    from_last_full = equation(
        seconds,
        smallest(1, full_buckets) * full_time + last_time - backward_compute * last_bucket / gradient_bytes,
        "busy from the last bucket of the cap on",
    )
    exposed = equation(
        seconds,
        largest(from_first, from_second, from_last_full, last_time),
        "what shows of the reductions of a step, with no_sync before the last micro-batch",
        source="max-plus form of the queue of buckets; an event simulator",
    )
    exposed_without_no_sync = equation(
        seconds, micro_batches * exposed, "what shows where every micro-batch reduces its gradients"
    )
    best = part(BestBuckets, start=start, rate=rate)
    at_best = part(EqualBuckets, buckets=best.buckets, start=start, rate=rate)


class StageBuckets(Chapter):
    """The buckets of the fullest stage of a layout."""

    parameters = given(count, "weights of the fullest stage on a rank")
    gradient_wire_bytes = given(bytes_, "a gradient as it is exchanged", owner="assumption")
    layers = given(count, "layers of the average stage")
    layer_backward = given(seconds, "a layer and micro-batch, backward")
    ddp = part(
        Buckets,
        shared=True,
        gradient_bytes=parameters * gradient_wire_bytes,
        backward_compute=layers * layer_backward,
    )


class PipelineBuckets(Chapter):
    """Reductions behind an interleaved pipeline whose first device sets the pace, each chunk of layers in some buckets.

    Weights are gathered chunk by chunk at the start of the step. One chunk is 1F1B.
    """

    pp = given(count, "pipeline stages (p)")
    virtual_stages = given(count, "chunks of layers on a rank (v)")
    buckets = given(count, "buckets of a chunk (K)")
    reduction = given(seconds, "of all gradients of a rank")
    gather = given(seconds, "of all weights of a rank")
    forward_compute = given(seconds, "of a rank and micro-batch")
    backward_compute = given(seconds, "of a rank and micro-batch")

    chunk_reduction = equation(seconds, reduction / virtual_stages, "of one chunk")
    chunk_gather = equation(seconds, gather / virtual_stages, "of one chunk")
    chunk_forward = equation(seconds, forward_compute / virtual_stages, "of one chunk and micro-batch")
    chunk_backward = equation(seconds, backward_compute / virtual_stages, "of one chunk and micro-batch")
    last_chunk = equation(
        seconds,
        largest(chunk_reduction / buckets, chunk_reduction - (buckets - 1) / buckets * chunk_backward),
        "what shows of the chunk that is computed last",
    )
    exposed_gradient = equation(
        seconds,
        last_chunk + (virtual_stages - 1) * largest(0, chunk_reduction - pp * chunk_backward),
        "what shows of the reductions",
        source="an event simulator",
    )
    exposed_weight = equation(
        seconds,
        chunk_gather + (virtual_stages - 1) * largest(0, chunk_gather - pp * chunk_forward),
        "what shows of the gathers",
        source="an event simulator",
    )
