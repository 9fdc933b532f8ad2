"""Tests of `lint.secrets`: formats of many services, and no false positives."""

import json
import random
import string
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.paths import SHARED, SHIPPED_CATALOG
from support.profile import example_settings
from toolcatalog.catalog.model import ToolVersion
from toolcatalog.lint import secrets
from toolcatalog.lint.secret_patterns import SECRET_KINDS
from toolcatalog.lint.views import ToolView

WIRE = SHARED / "data" / "wire-tools.json"
ALNUM = string.ascii_letters + string.digits
HEX = "0123456789abcdef"


def chance(length: int, alphabet: str = ALNUM) -> str:
    """Random characters, the same in each run, and not a placeholder."""
    source = random.Random(f"{length} {alphabet}")  # noqa: S311 - nothing secret
    while True:
        text = "".join(source.choice(alphabet) for _ in range(length))
        if not secrets._MADE_UP.search(text):
            return text


def uuid() -> str:
    """A random UUID."""
    return "-".join(chance(length, HEX) for length in (8, 4, 4, 4, 12))


# formats as the services document them, made without the patterns
TOKENS = {
    "Linear": f"lin_api_{chance(40)}",
    "Notion": f"secret_{chance(43)}",
    "Notion, new": f"ntn_{chance(11, '2345678901')}{chance(35)}",
    "Atlassian": f"ATATT3xFfGF0{chance(171)}={chance(8, '0123456789ABCDEF')}",
    "HubSpot": f"pat-na1-{uuid()}",
    "Discord": f"MT{chance(24)}.G{chance(5)}.{chance(38)}",
    "Discord webhook": f"https://discord.com/api/webhooks/{chance(18, '23456789')}/{chance(68)}",
    "DigitalOcean": f"dop_v1_{chance(64, HEX)}",
    "Databricks": f"dapi{chance(32, HEX)}",
    "Vault": f"hvs.{chance(95)}",
    "Grafana": f"glsa_{chance(32)}_{chance(8, HEX)}",
    "Docker": f"dckr_pat_{chance(27)}",
    "Figma": f"figd_{chance(40)}",
    "Telegram": f"{chance(10, '123456789')}:AA{chance(33)}",
    "Twilio": f"SK{chance(32, HEX)}",
    "Mailgun": f"key-{chance(32, HEX)}",
    "Mailgun, new": f"{chance(32, HEX)}-{chance(8, HEX)}-{chance(8, HEX)}",
    "Sentry": f"sntryu_{chance(64, HEX)}",
    "Airtable": f"pat{chance(14)}.{chance(64, HEX)}",
    "Asana": f"1/{chance(16, '123456789')}:{chance(32, HEX)}",
    "GitHub": f"ghp_{chance(36)}",
    "Google": f"AIza{chance(35)}",
    "Slack": f"xoxb-{chance(11, '23456789')}-{chance(12, '23456789')}-{chance(24)}",
    "Stripe": f"rk_live_{chance(24)}",
    "Salesforce": f"00D{chance(15)}!{chance(96)}",
    "Okta": f"Authorization: SSWS 00{chance(40)}",
    "PagerDuty": f"Authorization: Token token={chance(20)}",
    "ClickUp": f"pk_{chance(8, '23456789')}_{chance(32, string.ascii_uppercase)}",
    "Groq": f"gsk_{chance(52)}",
}


def view(text: str) -> ToolView:
    """A tool with a text."""
    value = {"name": "Send", "description": text}
    return ToolView(
        ToolVersion.from_value(value, path="t.yaml", slug="A_B", toolkit="a", version="1")
    )


@pytest.mark.parametrize("token", TOKENS.values(), ids=TOKENS)
def test_documented_secret_formats(token: str) -> None:
    """Within a sentence, and never printed completely."""
    (finding,) = secrets.check_secrets(view(f'Send "{token}" with each call.'))
    assert token not in finding.message
    assert token not in secrets.redact_secrets(f"Send {token}.")


def test_enough_services_are_covered() -> None:
    """At least 80, and all shipped toolkits with their own tokens."""
    services = {kind.service for kind in SECRET_KINDS}
    assert len(services) >= 80
    brands = {
        "gmail": "Google",
        "googlecalendar": "Google",
        "googledrive": "Google",
        "jira": "Atlassian",
    }
    without_keys = {"hackernews", "openmeteo", "wikipedia"}
    for folder in (SHIPPED_CATALOG / "toolkits").iterdir():
        if folder.name not in without_keys:
            brand = brands.get(folder.name, folder.name)
            assert brand.lower() in {service.lower() for service in services}


@pytest.mark.parametrize("kind", SECRET_KINDS, ids=lambda kind: kind.pattern.pattern[:30])
def test_keyword_filter_hides_no_secret(kind: Any) -> None:
    """Whatever matches a pattern contains its keyword or hint."""

    @example_settings(10)
    @given(st.from_regex(kind.pattern, fullmatch=True))
    def check(token: str) -> None:
        assert kind in secrets._possible_kinds(json.dumps(f"a {token} b"))

    check()


def test_real_tools_have_no_secrets() -> None:
    """930 real tools with many sample values."""
    if not WIRE.exists():
        pytest.skip("the real tool definitions lie outside the repository, and not here")
    definitions = json.loads(WIRE.read_bytes())
    assert len(definitions) == 930
    texts = [json.dumps(definition, ensure_ascii=False) for definition in definitions]
    findings = [finding for text in texts for finding in secrets.check_secrets(view(text))]
    assert findings == []


def test_shipped_files_have_no_secrets() -> None:
    for file in sorted(Path(SHIPPED_CATALOG).rglob("*.yaml")):
        assert not [*secrets.check_secrets(view(file.read_text()))], file
