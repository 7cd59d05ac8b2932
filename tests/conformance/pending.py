"""Tests of what this service does not do yet: test (or one case of it) to what is missing. Each must fail (a strict
expected failure): take the line out when it starts to pass. A name with a case in brackets stands for that case."""

PENDING: dict[str, str] = {
}
