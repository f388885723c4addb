"""Every operation of the OpenAPI document with generated requests: no 5xx, no status that is not documented."""

from __future__ import annotations

import json

from hypothesis import HealthCheck, Phase, given, settings

HARMFUL = ("DELETE /workspaces/{workspace}", "DELETE /tokens/{id}", "DELETE /members/{member}")
"""What would take the ground from under the requests that follow."""


def _lines(_context, value) -> bytes:
    """Bodies that are no JSON document: what was generated, as one line."""
    return value if isinstance(value, bytes) else (value if isinstance(value, str) else json.dumps(value)).encode()


def test_generated_requests_break_nothing(server, admin):
    import schemathesis  # which takes a second; every worker collects this module
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi.checks import response_schema_conformance, status_code_conformance

    schemathesis.serializer("application/x-ndjson", "application/vnd.apache.arrow.stream")(_lines)
    checks = [not_a_server_error, status_code_conformance, response_schema_conformance]
    insert = {"table_name": "t", "table_schema": {"x": "TEXT", "n": "BIGINT"}}
    admin.post("/workspaces/default/tables", json=insert).raise_for_status()
    admin.post("/workspaces/default/memories", json={"text": "something to find", "id": "m"}).raise_for_status()
    schema = schemathesis.openapi.from_dict(admin.get("/openapi.json").json())
    headers = {"Authorization": f"Bearer {server.first_token}"}
    asked: list[str] = []
    broken: list[str] = []
    for result in schema.get_all_operations():
        operation = result.ok()
        name = f"{operation.method.upper()} {operation.path}"
        if name not in HARMFUL:
            try:
                _attack(operation, server.url, headers, checks)
            except Exception as error:
                broken.append(f"{name}: {error}"[:1500])
            asked.append(name)
    assert not broken, "\n\n".join(broken)
    assert len(asked) > 50
    assert server.client().get("/ready").status_code == 200


def _attack(operation, url: str, headers: dict[str, str], checks: list) -> None:
    @settings(
        max_examples=2,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy())
    def run(case) -> None:
        if "workspace" in case.path_parameters:
            case.path_parameters["workspace"] = "default"
        if "table" in case.path_parameters and len(str(case.path_parameters["table"])) % 2:
            case.path_parameters["table"] = "t"
        response = case.call(base_url=url, headers=headers, timeout=120)  # a busy machine
        case.validate_response(response, checks=checks)

    run()
