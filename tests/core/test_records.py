"""Records in JSON: what no known kind of record has written is refused in one sentence."""

from __future__ import annotations

import json

import pytest

from reconcile.core.records import SCHEMA, from_json


@pytest.mark.parametrize("kind", [[1], {}, None, 3, "sum"])
def test_a_record_of_no_known_kind_is_refused_whatever_its_kind_is(kind: object) -> None:
    with pytest.raises(ValueError, match="neither a trace nor a ledger"):
        from_json(json.dumps({"schema": SCHEMA, "kind": kind}))
