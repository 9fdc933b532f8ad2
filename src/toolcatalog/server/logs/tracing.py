"""Tracing: an OpenTelemetry span for each request.

The standard variables configure it: `OTEL_EXPORTER_OTLP_ENDPOINT`, `OTEL_SERVICE_NAME`,
`OTEL_TRACES_SAMPLER` and others. A trace that the client started with `traceparent` is continued.

API keys are redacted when spans are exported, because only then is a span complete. The values of
the headers that should have keys are hidden as a whole, since a key in them may be encoded.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.instrumentation.asgi import OpenTelemetryMiddleware
from opentelemetry.sdk.resources import SERVICE_NAME, OTELResourceDetector, Resource
from opentelemetry.sdk.trace import Event, ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult
from opentelemetry.trace import SpanContext, Status, TraceState
from opentelemetry.util.http import (
    OTEL_INSTRUMENTATION_HTTP_CAPTURE_HEADERS_SANITIZE_FIELDS,
    get_custom_headers,
)
from opentelemetry.util.types import AttributeValue
from starlette.types import ASGIApp, Receive, Scope, Send

from toolcatalog.keys.api_keys import redact
from toolcatalog.server.dispatcher import match_route
from toolcatalog.server.request_context import path_below_root
from toolcatalog.server.responses import (
    RESPONSE_EXTENSION,
    Response,
    ResponseWriter,
    find_writer,
)

_SECRET_HEADERS = ("x-api-key", "authorization")


def trace_requests(app: ASGIApp) -> ASGIApp:
    """Return an application that records a span of each request and exports it with OTLP."""
    default = Resource.create({SERVICE_NAME: "toolcatalog"})
    provider = TracerProvider(resource=default.merge(OTELResourceDetector().detect()))
    provider.add_span_processor(BatchSpanProcessor(_RedactingExporter()))
    configured = get_custom_headers(OTEL_INSTRUMENTATION_HTTP_CAPTURE_HEADERS_SANITIZE_FIELDS)
    traced: ASGIApp = OpenTelemetryMiddleware(
        app,
        default_span_details=_describe_request,
        tracer_provider=provider,
        exclude_spans=["receive", "send"],
        http_capture_headers_sanitize_fields=[*configured, *_SECRET_HEADERS],
    )

    async def trace(scope: Scope, receive: Receive, send: Send) -> None:
        if writer := find_writer(scope):
            scope["extensions"] = {RESPONSE_EXTENSION: {"writer": _MessageWriter(writer)}}
        await traced(scope, receive, send)

    return trace


class _MessageWriter:
    """Has each response sent as messages, which the middleware reads."""

    def __init__(self, writer: ResponseWriter) -> None:
        self.is_disconnected = writer.is_disconnected

    def write_response(self, response: Response) -> bool:  # noqa: ARG002 - as of a ResponseWriter
        """Return False."""
        return False


def _describe_request(scope: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the name of the span and its route, which have few different values."""
    method = scope.get("method", "HTTP")
    match = match_route(path_below_root(scope)) if scope.get("path") else None
    if match is None:
        return method, {}
    template = match[0].template
    return f"{method} {template}", {"http.route": template}


class _RedactingExporter(OTLPSpanExporter):
    """An exporter that redacts API keys wherever a client wrote them."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Export spans; see `SpanExporter.export`."""
        return super().export([_redact_span(span) for span in spans])


def _redact_span(span: ReadableSpan) -> ReadableSpan:
    """Return a copy of a span without API keys."""
    return ReadableSpan(
        name=redact(span.name),
        context=_redact_context(span.context),
        parent=span.parent,
        resource=span.resource,
        attributes=_redact_attributes(span.attributes),
        events=[
            Event(redact(event.name), _redact_attributes(event.attributes), event.timestamp)
            for event in span.events
        ],
        links=span.links,
        kind=span.kind,
        status=Status(span.status.status_code, redact(span.status.description or "") or None),
        start_time=span.start_time,
        end_time=span.end_time,
        instrumentation_scope=span.instrumentation_scope,
    )


def _redact_context(context: SpanContext) -> SpanContext:
    """Drop entries with a key from the trace state, which the client sends in `tracestate`."""
    entries = [
        (name, value)
        for name, value in context.trace_state.items()
        if redact(f"{name} {value}") == f"{name} {value}"
    ]
    return SpanContext(
        context.trace_id,
        context.span_id,
        context.is_remote,
        context.trace_flags,
        TraceState(entries),
    )


def _redact_attributes(
    attributes: Mapping[str, AttributeValue] | None,
) -> dict[str, AttributeValue]:
    """Redact names and values; the name of a captured header is a part of its attribute's name."""
    return {redact(name): _redact_value(value) for name, value in (attributes or {}).items()}


def _redact_value(value: AttributeValue) -> AttributeValue:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, Sequence):
        return [redact(item) if isinstance(item, str) else item for item in value]
    return value
