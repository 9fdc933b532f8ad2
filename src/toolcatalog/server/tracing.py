"""Tracing: an OpenTelemetry span for each request.

The standard variables configure it: `OTEL_EXPORTER_OTLP_ENDPOINT`, `OTEL_SERVICE_NAME`,
`OTEL_TRACES_SAMPLER` and others. A trace that the client started with `traceparent` is continued.

If an operator lets headers be captured, those that can contain an API key are not.
"""

import os
from collections.abc import Sequence
from typing import Any

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.instrumentation.asgi import OpenTelemetryMiddleware
from opentelemetry.sdk.resources import SERVICE_NAME, OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span
from starlette.types import ASGIApp

from toolcatalog.keys.api_keys import redact
from toolcatalog.server.dispatcher import match_route
from toolcatalog.server.request_context import path_below_root

_SANITIZE_VARIABLE = "OTEL_INSTRUMENTATION_HTTP_CAPTURE_HEADERS_SANITIZE_FIELDS"
_SECRET_HEADERS = ("x-api-key", "authorization", "x-request-id")  # patterns of names


def trace_requests(app: ASGIApp) -> ASGIApp:
    """Return an application that records a span of each request and exports it with OTLP."""
    default = Resource.create({SERVICE_NAME: "toolcatalog"})
    provider = TracerProvider(resource=default.merge(OTELResourceDetector().detect()))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    traced: ASGIApp = OpenTelemetryMiddleware(
        app,
        default_span_details=_describe_request,
        server_request_hook=_redact_attributes,
        tracer_provider=provider,
        http_capture_headers_sanitize_fields=[
            *_SECRET_HEADERS,
            *filter(None, os.environ.get(_SANITIZE_VARIABLE, "").split(",")),
        ],
        exclude_spans=["receive", "send"],
    )
    return traced


def _describe_request(scope: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the name of the span and its route, which have few different values."""
    method = scope.get("method", "HTTP")
    match = match_route(path_below_root(scope)) if scope.get("path") else None
    if match is None:
        return method, {}
    template = match[0].template
    return f"{method} {template}", {"http.route": template}


def _redact_attributes(span: Span, scope: dict[str, Any]) -> None:  # noqa: ARG001 - required
    """Redact API keys that a client wrote into the URL or a header."""
    attributes = getattr(span, "attributes", None) or {}
    for name, value in [*attributes.items()]:
        redacted = redact(value) if isinstance(value, str) else value
        if isinstance(value, Sequence) and not isinstance(value, str):  # of a captured header
            redacted = [redact(item) if isinstance(item, str) else item for item in value]
        if redacted != value:
            span.set_attribute(name, redacted)
