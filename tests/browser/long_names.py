"""Results whose names are as long as those of real models: what a page has to wrap, or to cut with a mark."""

from __future__ import annotations

from reconcile.core.records import MAC
from reconcile.engine.answer import Answer
from reconcile.products.audit import report
from reconcile.products.audit.claims import Claim
from reconcile.products.audit.verdict import State, Verdict
from reconcile.products.decode.readings import WORK, Candidate
from tests.browser.test_names import everywhere

LAYER = "base_model.model.model.layers.31.self_attn.q_proj.lora_A.default.base_layer"
MODEL = "timm:vit_so400m_patch14_siglip_gap_378.webli_ft_in1k"
SOURCE = "torchvision 0.28.0, ViT_H_14_Weights.IMAGENET1K_SWAG_LINEAR_V1; https://example.org/a/very/long/address.csv"


def adapter() -> Answer:
    """Layers of an adapter of peft."""
    return everywhere(LAYER)


def audit(rows: int = 12) -> str:
    """A page of an audit: every verdict, and sources as long as they are."""
    found = []
    for row in range(1, rows + 1):
        value = 322_430_828_544 + row
        best = Candidate(
            value, WORK, MAC, "the products that ran, and norms and pools as fvcore counts them", f"{value:,}", "a, b"
        )
        claim = Claim(row, MODEL, "1,3,378,378", f"{value / 1e9:.2f}", "GMACs", SOURCE)
        state = list(State)[row % len(State)]
        explained = state in (State.EXPLAINED, State.CUT)
        found.append(
            Verdict(claim, state, best, 3, 2, 0.000017, value)
            if explained
            else Verdict(claim, state, macs=value, reason="no reading gives it: the nearest is 3 % away")
        )
    return report.to_html(found, (3, 1000), "reconcile audit claims.csv --out audit")
