"""Sentences for configurations that the sources of several formulas do not cover; '' for one that they do."""

from .terms import Facts


def no_latent(facts: Facts) -> str:
    """The sentence for latent attention, of a source with one width of a head."""
    return (
        "its source has one width of a head, and this model's attention is latent (kv_lora_rank)"
        if facts.get("rkv")
        else ""
    )


def plain_only(facts: Facts) -> str:
    """The sentence for experts and for latent attention, of a source that covers plain decoders only."""
    experts = facts.get("E")
    return f"its source has no term for experts, and this model has {experts}" if experts else no_latent(facts)


def windowless(facts: Facts) -> str:
    """The sentence for a configuration with sliding layers that does not state the width of their window."""
    return (
        "its source reads the width of a sliding window, and this model's config states none"
        if facts["windowless"]
        else ""
    )


def no_linear(facts: Facts) -> str:
    """The sentence for linear attention, of a source that has a formula of its own for it."""
    return (
        "its source counts linear attention by terms of its own, which are not written here" if facts.get("lk") else ""
    )
