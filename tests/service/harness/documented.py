"""Every answer the tests see is held against what /openapi.json says of its route: status, type, shape."""

import http.client
import json
import re

ITEMS = 1000  # of a list that are looked at
# What may come before a route is found, whatever the route (said in the document's description).
BEFORE_ROUTES = {307, 400, 404, 405, 408, 417, 431}

_document = None
foreign = set()  # ports of services of other programs, that the document says nothing about
_routes = []  # (method, template, pattern, operation)


def learn(port):
    """Asks the service for its document; once, it is the same for every service of one program."""
    global _document
    if _document is not None:
        return
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("GET", "/openapi.json")
    document = json.loads(connection.getresponse().read())
    connection.close()
    for template, methods in document["paths"].items():
        pattern = re.compile(re.sub(r"\{[a-z_]+\}", "[^/]+", template) + "$")
        for method, operation in methods.items():
            _routes.append((method.upper(), template, pattern, operation))
    _document = document


def check(port, method, target, answer):
    """Fails when the document does not allow this answer. What is no route's is nobody's business here."""
    if port in foreign:
        return
    path = target.split("?")[0]
    for known, template, pattern, operation in _routes:
        if known == method and pattern.match(path):
            _check(f"{method} {template}", operation["responses"], answer)
            return


def _check(where, responses, answer):
    told = responses.get(str(answer.status))
    if told is None:
        assert answer.status in BEFORE_ROUTES, f"{where} is not documented to answer {answer}"
        return
    if "content" not in told:
        assert answer.body == b"", f"{where} is documented to answer {answer.status} without a body, not {answer}"
        return
    kind = (answer.headers.get("Content-Type") or "").split(";")[0]
    assert kind in told["content"], f"{where} is not documented to answer {answer.status} with {kind}"
    if kind == "application/json":
        fault = fault_of(told["content"][kind]["schema"], json.loads(answer.body), "answer")
        assert fault is None, f"{where}, {answer.status}: {fault}"


KINDS = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}


def _is(kind, value):
    if kind in ("integer", "number"):
        whole = isinstance(value, int) and not isinstance(value, bool)
        return whole or (kind == "number" and isinstance(value, float))
    return isinstance(value, KINDS[kind])


def fault_of(schema, value, where):
    """What of the value the schema does not allow; None when it allows all of it. Members that the schema does not
    name are faults too: every field is documented."""
    if "$ref" in schema:
        return fault_of(_document["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]], value, where)
    if "anyOf" in schema:
        faults = [fault_of(one, value, where) for one in schema["anyOf"]]
        return None if None in faults else " or ".join(faults)
    kinds = schema.get("type", [])
    kinds = kinds if isinstance(kinds, list) else [kinds]
    if kinds and not any(_is(kind, value) for kind in kinds):
        return f"{where} is {value!r:.100} and not {' or '.join(kinds)}"
    if "enum" in schema and value not in schema["enum"]:
        return f"{where} is {value!r} and none of {schema['enum']}"
    if "minimum" in schema and value is not None and value < schema["minimum"]:
        return f"{where} is {value}, less than {schema['minimum']}"
    if isinstance(value, dict) and "properties" in schema:
        return _fault_of_object(schema, value, where)
    if isinstance(value, list) and "items" in schema:
        faults = (fault_of(schema["items"], one, f"{where}[{i}]") for i, one in enumerate(value[:ITEMS]))
        return next((fault for fault in faults if fault), None)
    return None


def _fault_of_object(schema, value, where):
    missing = [name for name in schema.get("required", []) if name not in value]
    unknown = [name for name in value if name not in schema["properties"]]
    if missing or unknown:
        return f"{where} lacks {missing} and has {unknown} undocumented"
    faults = (fault_of(schema["properties"][name], value[name], f"{where}.{name}") for name in value)
    return next((fault for fault in faults if fault), None)
