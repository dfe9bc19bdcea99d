"""The JSON Schema of the JSON report: schema.json, completed with the causes and the registered frameworks."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

from ..core.causes import Cause
from ..core.registry import frameworks


def schema() -> dict[str, Any]:
    """JSON Schema of ``report.json.to_dict``: ``schema.json``, with what the records of causes and frameworks add.

    A row names the frameworks that were aligned: two or more of those whose layers an author names.
    """
    data: dict[str, Any] = json.loads(resources.files(__package__).joinpath("schema.json").read_text(encoding="utf-8"))
    data["$defs"]["cause"] = {
        "description": "A named reason from the closed list; the order here is the booking order.",
        "enum": [cause.value for cause in Cause],
    }
    match = data["$defs"]["match"]
    paths = {"type": "array", "items": {"type": "string"}}
    sides = {
        record.name: {"description": f"Layer paths in {record.title}; '' is the model itself.", **paths}
        for record in frameworks().values()
        if record.aligned
    }
    texts = {name: match["properties"][name] for name in ("layer", "by", "comment")}
    match["properties"] = {"layer": texts.pop("layer"), **sides, **texts}
    if len(sides) > 2:
        match |= {
            "required": ["layer", *texts],
            "minProperties": len(texts) + 3,
            "maxProperties": len(texts) + 1 + len(sides),
        }
    return data
