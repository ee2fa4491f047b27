"""What a training run takes: steps, days, chip-hours, money, energy; without failures and with them."""

from costmodel.symbolic import (
    Chapter,
    bytes_,
    bytes_per_second,
    ceil_divide,
    count,
    dollars,
    dollars_per_second,
    equation,
    exponential,
    given,
    joules,
    largest,
    part,
    per_second,
    seconds,
    select,
    smallest,
    square_root,
    watts,
)

HOPELESS = 300
"""Failures in one attempt from which on no more are counted: the numbers stay finite."""


class Goodput(Chapter):
    """The share of a run's time that is progress, when chips fail at random and the run goes on from its last checkpoint.

    Failures come at a constant rate for each chip (a Poisson process), in restarts too. What is lost with one is the restart and
    the work since the checkpoint; what is paid without one is the time for which a checkpoint stops the training.
    """

    chips = given(count, "chips that stop the run when one of them fails", owner="cluster")
    failure_rate = given(per_second, "of one chip")
    checkpoint_blocking = given(seconds, "training time that one checkpoint takes", owner="assumption")
    restart = given(seconds, "from a failure to the next training step", owner="assumption")
    shortest_interval = given(seconds, "between checkpoints: one step, or what it takes to write one")

    between_failures = equation(seconds, 1 / (chips * failure_rate), "mean time between failures of the whole run")
    best_interval = equation(
        seconds,
        square_root(2 * checkpoint_blocking * between_failures),
        "training between two checkpoints that loses least",
        source="Young 1974",
        approximate="to first order in the interval over the time between failures",
    )
    interval = equation(seconds, largest(best_interval, shortest_interval), "training between two checkpoints")
    attempt_failures = equation(
        count,
        smallest((interval + checkpoint_blocking) / between_failures, HOPELESS),
        "expected in an interval; where there are very many, nothing is ever finished",
    )
    restart_failures = equation(count, smallest(restart / between_failures, HOPELESS), "expected in a restart")
    segment = equation(
        seconds,
        between_failures * exponential(restart_failures) * (exponential(attempt_failures) - 1),
        "expected time from one checkpoint to the next, failures and restarts included",
        source="Daly 2006, equation 13",
    )
    goodput = equation(count, interval / segment, "progress over time")
    first_order = equation(
        count,
        (1 - (restart + interval / 2) / between_failures) / (1 + checkpoint_blocking / interval),
        "the same while failures are rare",
        source="Kokolis et al. 2025, expected time ratio",
        valid="restart and interval are short beside the time between failures",
        approximate="to first order; failures during a restart are charged in full",
    )


class Economics(Chapter):
    """A run of so many tokens at so many a step, on so many chips: as if nothing failed, and as it is to be expected."""

    step_time = given(seconds, "one optimizer step")
    step_tokens = given(count, "tokens of a step")
    train_tokens = given(count, "tokens of the run", owner="workload")
    chips = given(count, "chips", owner="cluster")
    chip_price = given(dollars_per_second, "of one chip", owner="cluster")
    chip_power = given(watts, "rated power of one chip", owner="chip")
    training_share = given(count, "power drawn over rated power", owner="assumption")
    host_power_per_chip = given(watts, "of hosts, for each chip", owner="assumption")
    host_power_per_chip_nvl72 = given(watts, "the same in a rack that is one fast domain", owner="assumption")
    rack_scale_domain = given(count, "chips of a fast domain from which it is such a rack", owner="assumption")
    domain_chips = given(count, "chips of a switched fast domain, 0 on a torus", owner="cluster")
    network_power_per_chip = given(watts, "of the network, for each chip", owner="assumption")
    site_overhead = given(count, "power of the building over that of its computers (PUE)", owner="assumption")

    steps = equation(count, ceil_divide(train_tokens, step_tokens), "steps of the run")
    run_time = equation(seconds, steps * step_time, "of the run, without failures")
    chip_time = equation(seconds, run_time * chips, "of all chips together")
    cost = equation(dollars, chip_time * chip_price, "of the chips, at the list price of one provider on one day")
    host_power = equation(
        watts,
        select(domain_chips >= rack_scale_domain, host_power_per_chip_nvl72, host_power_per_chip),
        "of hosts, for each chip",
    )
    drawn_power = equation(
        watts,
        site_overhead * (training_share * chip_power + host_power + network_power_per_chip),
        "for each chip, its share of hosts, network and building included",
    )
    energy = equation(joules, chip_time * drawn_power, "of the run")

    # With failures
    parameters = given(count, "weights that are trained and stored")
    checkpoint_bytes_per_parameter = given(
        bytes_, "a weight in a checkpoint: as it is stored, and its optimizer states"
    )
    checkpoint_write_bandwidth = given(bytes_per_second, "of the whole cluster to its storage", owner="assumption")
    checkpoint_blocking = given(seconds, "training time that one checkpoint takes", owner="assumption")
    restart = given(seconds, "from a failure to the next training step", owner="assumption")
    failure_rate_gpu = given(per_second, "of a GPU, with its share of host and network", owner="assumption")
    failure_rate_nvl72 = given(per_second, "the same in a rack that is one fast domain", owner="assumption")
    failure_rate_tpu = given(per_second, "of a TPU chip", owner="assumption")
    lowest_failure_rate = given(count, "rate of the best fleets over the usual one", owner="assumption")
    highest_failure_rate = given(count, "rate of the worst fleets over the usual one", owner="assumption")
    small_job_factor = given(count, "how much more often small jobs stop than their hardware fails", owner="assumption")
    small_job_chips = given(count, "chips up to which a job is small", owner="assumption")
    spare_share = given(count, "machines kept idle as spares over those that work", owner="assumption")

    checkpoint_bytes = equation(bytes_, parameters * checkpoint_bytes_per_parameter, "of one checkpoint")
    checkpoint_write = equation(
        seconds, checkpoint_bytes / checkpoint_write_bandwidth, "to write one, behind the training"
    )
    failure_rate = equation(
        per_second,
        select(
            domain_chips > 0,
            select(domain_chips >= rack_scale_domain, failure_rate_nvl72, failure_rate_gpu),
            failure_rate_tpu,
        ),
        "of one chip",
    )
    shortest_interval = equation(seconds, largest(step_time, checkpoint_write), "between checkpoints")
    usual = part(Goodput, failure_rate=failure_rate)
    at_best = part(Goodput, failure_rate=failure_rate * lowest_failure_rate)
    at_worst = part(
        Goodput,
        failure_rate=failure_rate * highest_failure_rate * select(chips <= small_job_chips, small_job_factor, 1),
    )
    mtbf = equation(seconds, usual.between_failures, "mean time between failures of the run")
    checkpoint_interval = equation(seconds, usual.interval, "training between two checkpoints")
    goodput = equation(count, usual.goodput, "progress over time, evaluation and data stalls apart")
    goodput_low = equation(count, at_worst.goodput, "with the failures of the worst fleets")
    goodput_high = equation(count, at_best.goodput, "with the failures of the best fleets")
    run_time_with_failures = equation(seconds, run_time / goodput, "of the run, failures and checkpoints included")
    chip_time_with_failures = equation(
        seconds, run_time_with_failures * chips * (1 + spare_share), "of all chips, spares included"
    )
    cost_with_failures = equation(dollars, chip_time_with_failures * chip_price, "of the chips, spares included")
    energy_with_failures = equation(
        joules,
        run_time_with_failures * chips * drawn_power,
        "of the run",
        approximate="chips draw in restarts what they draw in training; spares draw nothing",
    )
