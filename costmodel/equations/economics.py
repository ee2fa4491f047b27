"""What a training run takes: steps, days, chip-hours, money, energy."""

from costmodel.symbolic import (
    Chapter,
    ceil_divide,
    count,
    dollars,
    dollars_per_second,
    equation,
    given,
    joules,
    seconds,
    select,
    watts,
)


class Economics(Chapter):
    """A run of so many tokens at so many a step, on so many chips, without failures."""

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
