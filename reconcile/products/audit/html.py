"""The HTML page of an audit (index.html): its summary and a searchable table of all rows; it sends no request."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources

from markupsafe import Markup

from ...core.text import number
from ...report.document import Fold, section
from ...report.document.html import blocks_to_html
from ...report.page import finalize, hash_of, style_page
from ...report.rendering import environment
from . import report, summary
from .scatter_plot import picture
from .source_inference import Found
from .verdict import State, Verdict


def to_html(verdicts: Sequence[Verdict], drawn: tuple[int, int], command: str = "", found: Sequence[Found] = ()) -> str:
    """The page. ``drawn`` is how many random figures are explained, and how many were drawn (verdict.by_chance); ``found`` is
    what each source counts."""
    template = environment(finalize, autoescape=True, package=__package__, folder=".")
    rules, script = (resources.files(__package__).joinpath(f"audit.{end}").read_text("utf-8") for end in ("css", "js"))
    style = style_page(rules)
    present = {verdict.state for verdict in verdicts}
    groups = summary.several(verdicts)
    sources, readings = report.describe_sources(found), report.describe_readings(verdicts)
    several = (Fold(f"{number(len(groups))} models", (report.tabulate_models(groups),)),) if groups else ()
    parts = (
        ("What each source counts", sources),
        ("What the explained figures count", readings),
        ("Several figures for one model", several),
    )
    words = Fold("Words of this page", (report.describe_words(verdicts),))
    return template.get_template("audit.html.j2").render(
        verdicts=verdicts,
        states=[state for state in State if state in present],
        introduction=blocks_to_html((*report.introduce(verdicts, drawn, command), words)),
        picture=picture(verdicts),
        drawn=[state for state in State if any(v.state is state and v.macs for v in verdicts)],
        parts=blocks_to_html(block for title, blocks in parts for block in section(title, *blocks)),
        chance=report.chance,
        style=Markup(style),
        style_hash=Markup(hash_of(style)),
        script=Markup(script),
        script_hash=Markup(hash_of(script)),
    )
