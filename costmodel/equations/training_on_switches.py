"""A training step with its groups of ranks placed on chips behind switches."""

from costmodel.equations.collectives.fabric import SwitchFabric
from costmodel.equations.collectives.group_on_switches import TokensInGroupOnSwitches
from costmodel.equations.collectives.library_group import GroupAsRun
from costmodel.equations.communication import Groups, communicating
from costmodel.equations.parallelism.context import ContextPayloads
from costmodel.equations.parallelism.experts import ExpertPayloads
from costmodel.equations.parallelism.layout import Layout
from costmodel.equations.utilisation import Utilisation
from costmodel.symbolic import (
    Chapter,
    both,
    bytes_,
    column,
    count,
    equal,
    equation,
    given,
    holds,
    largest,
    part,
    smallest,
)


class SharedOnSwitches(Chapter):
    """Ranks with the same weights, of which neighbours share what is shared."""

    ranks = given(count, "ranks with the same weights")
    domain = given(count, "of these, in one fast domain")
    unit = given(count, "of these, in one scalable unit")
    sharing = given(count, "neighbours that share")

    groups = equation(count, ranks / sharing, "groups that share")
    domain_sharing = equation(count, smallest(sharing, domain), "neighbours that share in one fast domain")
    domain_groups = equation(count, largest(domain / sharing, 1), "groups that share in one fast domain")
    unit_sharing = equation(count, smallest(sharing, unit), "neighbours that share in one scalable unit")
    unit_groups = equation(count, largest(unit / sharing, 1), "groups that share in one scalable unit")


class OnSwitches(Chapter):
    """A step on chips behind switches: NVLink domains, scalable units, a spine."""

    layout = part(Layout, shared=True)
    context = part(ContextPayloads, shared=True)
    tp, cp, pp, replicas = layout.tp, layout.cp, layout.pp, layout.replicas
    domain_tp = column(count, "tensor-parallel ranks of a group in one fast domain")
    domain_cp = column(count, "context-parallel ranks of a group in one fast domain")
    domain_pp = column(count, "pipeline stages of a group in one fast domain")
    domain_dp = column(count, "data-parallel ranks of a group in one fast domain")
    unit_tp = column(count, "tensor-parallel ranks of a group in one scalable unit")
    unit_cp = column(count, "context-parallel ranks of a group in one scalable unit")
    unit_pp = column(count, "pipeline stages of a group in one scalable unit")
    unit_dp = column(count, "data-parallel ranks of a group in one scalable unit")
    gradient_wire_bytes = given(bytes_, "a gradient as it is exchanged", owner="assumption")

    fabric = part(SwitchFabric, shared=True)

    ulysses_ranks, ring_ranks = layout.ulysses_ranks, layout.ring_ranks
    domain_ulysses = equation(count, smallest(ulysses_ranks, domain_cp), "ranks that exchange heads in one fast domain")
    unit_ulysses = equation(count, smallest(ulysses_ranks, unit_cp), "ranks that exchange heads in one scalable unit")
    domain_ring = equation(count, largest(domain_cp / ulysses_ranks, 1), "groups of the ring in one fast domain")
    unit_ring = equation(count, largest(unit_cp / ulysses_ranks, 1), "groups of the ring in one scalable unit")
    domain_replicas = equation(
        count,
        domain_cp * domain_dp,
        "ranks with the same weights in one fast domain",
        source="counted over orders of four axes",
        valid="domains hold whole groups, or groups whole domains",
    )
    unit_replicas = equation(count, unit_cp * unit_dp, "ranks with the same weights in one scalable unit")

    # The grid of experts has the same ranks of a stage, from the inside out: etp, ep, copies.
    domain_stage = equation(count, domain_tp * domain_cp * domain_dp, "ranks of a stage in one fast domain")
    unit_stage = equation(count, unit_tp * unit_cp * unit_dp, "ranks of a stage in one scalable unit")
    domain_etp = equation(
        count,
        smallest(layout.etp, domain_stage),
        "ranks that share an expert in one fast domain",
        valid="powers of two, or one degree fills the domain",
    )
    domain_ep = equation(
        count, largest(smallest(layout.ep, domain_stage / domain_etp), 1), "expert-parallel ranks in one fast domain"
    )
    domain_experts = equation(
        count, largest(domain_stage / (domain_etp * domain_ep), 1), "ranks with the same experts in one fast domain"
    )
    unit_etp = equation(count, smallest(layout.etp, unit_stage), "ranks that share an expert in one scalable unit")
    unit_ep = equation(
        count, largest(smallest(layout.ep, unit_stage / unit_etp), 1), "expert-parallel ranks in one scalable unit"
    )
    unit_experts = equation(
        count, largest(unit_stage / (unit_etp * unit_ep), 1), "ranks with the same experts in one scalable unit"
    )

    along_tp = part(GroupAsRun, n=tp, m=domain_tp, u=unit_tp, S=layout.hidden_state_bytes)
    kv_block = part(GroupAsRun, n=ring_ranks, m=domain_ring, u=unit_ring, S=context.kv_block)
    kv_gradient_block = part(GroupAsRun, n=ring_ranks, m=domain_ring, u=unit_ring, S=context.kv_gradient_block)
    gathered_kv = part(GroupAsRun, n=cp, m=domain_cp, u=unit_cp, S=context.gathered_kv)
    gathered_kv_gradient = part(GroupAsRun, n=cp, m=domain_cp, u=unit_cp, S=context.gathered_kv_gradient)
    heads_in = part(GroupAsRun, n=ulysses_ranks, m=domain_ulysses, u=unit_ulysses, S=context.exchanged_in)
    heads_out = part(GroupAsRun, n=ulysses_ranks, m=domain_ulysses, u=unit_ulysses, S=context.exchanged_out)
    # Ranks with the same weights share them in groups of neighbours, and groups sum their shares.
    sharing = part(
        SharedOnSwitches, ranks=replicas, domain=domain_replicas, unit=unit_replicas, sharing=layout.sharing_ranks
    )
    on_replicas = {"n": replicas, "m": domain_replicas, "u": unit_replicas}
    among = {"n": layout.sharing_ranks, "m": sharing.domain_sharing, "u": sharing.unit_sharing}
    across = {"n": sharing.groups, "m": sharing.domain_groups, "u": sharing.unit_groups}
    stage_gradient_bytes = equation(
        bytes_, layout.heaviest_stage * gradient_wire_bytes, "gradients of the heaviest stage on the wire"
    )
    weights_of_layer = part(GroupAsRun, **among, S=layout.layer_parameters * layout.element_size)
    gradients_of_layer = part(GroupAsRun, **among, S=layout.layer_parameters * gradient_wire_bytes)
    weights_of_stage = part(GroupAsRun, **among, S=layout.heaviest_stage * layout.element_size)
    gradients_of_stage = part(GroupAsRun, **on_replicas, S=stage_gradient_bytes)
    scattered_of_stage = part(GroupAsRun, **among, S=stage_gradient_bytes)
    shares_of_stage = part(GroupAsRun, **across, S=stage_gradient_bytes / layout.sharing_ranks)
    exchanged = part(ExpertPayloads, shared=True)
    expert_domains = equation(count, layout.ep / domain_ep, "fast domains that the experts of a group of ranks lie on")
    node_limit = equation(
        count,
        largest(
            smallest(exchanged.groups_per_token, expert_domains),
            expert_domains * exchanged.groups_per_token / exchanged.expert_groups,
        ),
        "of these, those that the router confines a token to: a group of experts lies on one, or on several",
        source="DeepSeek-V3 technical report 2024, section 2.1.2: groups are nodes there",
        approximate="where a domain holds several groups, as if those of a token were never in the same one",
    )
    to_experts = {
        "n": layout.ep,
        "m": domain_ep,
        "u": unit_ep,
        "tokens": exchanged.sent_tokens,
        "chosen": layout.experts_per_token,
        "node_limit": node_limit,
    }
    tokens_there = part(TokensInGroupOnSwitches, **to_experts, token_bytes=exchanged.dispatched_token)
    tokens_back = part(TokensInGroupOnSwitches, **to_experts, token_bytes=exchanged.combined_token)
    expert_rows = part(GroupAsRun, n=layout.etp, m=domain_etp, u=unit_etp, S=exchanged.gathered_rows)
    expert_sharing = part(
        SharedOnSwitches,
        ranks=layout.expert_replicas,
        domain=domain_experts,
        unit=unit_experts,
        sharing=layout.expert_sharing_ranks,
    )
    on_copies = {"n": layout.expert_replicas, "m": domain_experts, "u": unit_experts}
    among_copies = {
        "n": layout.expert_sharing_ranks,
        "m": expert_sharing.domain_sharing,
        "u": expert_sharing.unit_sharing,
    }
    across_copies = {
        "n": expert_sharing.groups,
        "m": expert_sharing.domain_groups,
        "u": expert_sharing.unit_groups,
    }
    experts_of_layer = part(GroupAsRun, **among_copies, S=exchanged.expert_weights_layer)
    expert_gradients_of_layer = part(GroupAsRun, **among_copies, S=exchanged.expert_gradients_layer)
    experts_of_stage = part(GroupAsRun, **among_copies, S=exchanged.expert_weights_stage)
    expert_gradients_of_stage = part(GroupAsRun, **on_copies, S=exchanged.expert_gradients_stage)
    scattered_experts_of_stage = part(GroupAsRun, **among_copies, S=exchanged.expert_gradients_stage)
    expert_shares_of_stage = part(
        GroupAsRun, **across_copies, S=exchanged.expert_gradients_stage / layout.expert_sharing_ranks
    )
    along_pp = part(GroupAsRun, n=pp, m=domain_pp, u=unit_pp, S=layout.hidden_state_bytes / layout.sequence_split)
    # Groups inside fast domains share ports, those over several the NICs.
    sharing_crosses = equation(
        count, holds(layout.sharing_ranks > sharing.domain_sharing), "1 where ranks that share weights need the network"
    )
    tp_shares_links, cp_shares_links, ep_shares_links = (
        equation(
            count,
            holds(equal(holds(ranks > inside), crosses)),
            f"1 where {axis} traffic takes the links on which weights are shared",
        )
        for axis, ranks, inside, crosses in (
            ("tensor-parallel", tp, domain_tp, sharing_crosses),
            ("context-parallel", cp, domain_cp, sharing_crosses),
            ("experts'", layout.ep, domain_ep, sharing_crosses),
        )
    )
    across_crosses = equation(
        count,
        holds(sharing.groups > sharing.domain_groups),
        "1 where groups that share need the network for their sums",
    )
    tp_shares_across, cp_shares_across, ep_shares_across = (
        equation(
            count,
            holds(both(groups > 1, equal(holds(ranks > inside), crosses))),
            f"1 where {axis} traffic takes the links on which groups sum their shares",
        )
        for axis, ranks, inside, groups, crosses in (
            ("tensor-parallel", tp, domain_tp, sharing.groups, across_crosses),
            ("context-parallel", cp, domain_cp, sharing.groups, across_crosses),
            ("experts'", layout.ep, domain_ep, sharing.groups, across_crosses),
        )
    )
    fsdp_shares_across = equation(
        count,
        holds(both(layout.sharing_ranks > 1, sharing.groups > 1, equal(sharing_crosses, across_crosses))),
        "1 where traffic of groups that share weights takes the links on which they sum their shares",
    )
    step = communicating(
        layout,
        Groups(
            along_tp=along_tp,
            kv_block=kv_block,
            kv_gradient_block=kv_gradient_block,
            gathered_kv=gathered_kv,
            gathered_kv_gradient=gathered_kv_gradient,
            heads_in=heads_in,
            heads_out=heads_out,
            weights_of_layer=weights_of_layer,
            gradients_of_layer=gradients_of_layer,
            weights_of_stage=weights_of_stage,
            gradients_of_stage=gradients_of_stage,
            shares_of_stage=shares_of_stage,
            scattered_of_stage=scattered_of_stage,
            along_pp=along_pp,
            tokens_there=tokens_there,
            tokens_back=tokens_back,
            expert_rows=expert_rows,
            experts_of_layer=experts_of_layer,
            expert_gradients_of_layer=expert_gradients_of_layer,
            experts_of_stage=experts_of_stage,
            expert_gradients_of_stage=expert_gradients_of_stage,
            expert_shares_of_stage=expert_shares_of_stage,
            scattered_experts_of_stage=scattered_experts_of_stage,
        ),
    )
    worth = part(Utilisation, shared=True)
