"""Lint rules for secrets and dangerous links in a tool's texts.

Obvious placeholders are accepted, so that examples are possible: `xoxb-your-token`,
`AKIA...EXAMPLE`, `https://user:password@host`.
"""

import re
from collections.abc import Callable, Iterator, Mapping

from toolcatalog.errors import Finding
from toolcatalog.lint.rule import ToolRule
from toolcatalog.lint.secret_patterns import SECRET_KINDS, SecretKind
from toolcatalog.lint.views import KeywordMatcher, ToolView

_SHOWN_LENGTH = 8  # characters of a key that a message repeats
_MIN_DISTINCT_CHARS = 8  # distinct characters: random keys have more
_MADE_UP = re.compile(
    r"example|sample|your|dummy|fake|test|placeholder|redact|change|secret|token"
    r"|1234567|7654321|abcdef|a1b2c3|x{4}|0{6}|\*{3}|\.{3}"
    # examples from jwt.io and GitHub's documentation
    "|eyJzdWIiOiIxMjM0NTY3ODkw|16C7e42F292c6912E7710c838347Ae178B4a",
    re.IGNORECASE,
)


_SECRET_KEYWORDS = KeywordMatcher(*{word for kind in SECRET_KINDS for word in kind.keywords})
_JSON_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{4}|.)")
_SECRET_HINTS = KeywordMatcher(patterns=[kind.hint for kind in SECRET_KINDS if kind.hint])
_SCRIPT_KEYWORDS = KeywordMatcher("script:", "data:text/", "data:application/")
_DATA_KEYWORDS = KeywordMatcher("data:")
_HTTP_KEYWORDS = KeywordMatcher("http://")
_SCRIPT_LINK = re.compile(
    r"\b(?:javascript|vbscript):(?=[^\s:,.`'\")])"
    r"|\bdata:(?:text/html|application/xhtml\+xml|(?:text|application)/javascript)[;,]",
    re.IGNORECASE,
)
_DATA_LINK = re.compile(
    r"\bdata:[a-z]+/[a-z0-9.+-]+(?:;[a-z0-9=_.-]+)*,[A-Za-z0-9+/%=_-]{32,}", re.IGNORECASE
)
_HTTP_LINK = re.compile(
    r"\bhttp://([a-z0-9-]+(?:\.[a-z0-9-]+)*\.[a-z]{2,}|\d+(?:\.\d+){3})(?![a-z0-9.{<-])",
    re.IGNORECASE,
)
_LOCAL_HOST = re.compile(
    r"(?:127|10|0)\.\d+\.\d+\.\d+|192\.168\.\d+\.\d+|169\.254\.\d+\.\d+"
    r"|172\.(?:1[6-9]|2\d|3[01])\.\d+\.\d+"
    r"|(?:.*\.)?(?:localhost|local|internal|lan|example|test|invalid|example\.(?:com|org|net))",
    re.IGNORECASE,
)
# hosts of identifiers that are not opened as links: vocabularies and XML namespaces
_IDENTIFIER_HOST = re.compile(
    r"(?:www\.)?(?:w3\.org|schema\.org|json-schema\.org|purl\.org|xmlns\.com|ogp\.me|opengis\.net)"
    r"|schemas?\..*|ns\..*|.*xmlsoap\.org",
    re.IGNORECASE,
)
_LINK_USERINFO = re.compile(r"(://)[^\s/:@\"'<>?#]*:[^\s/@\"'<>?#]+@")
_WHOLE_PRIVATE_KEY = re.compile(
    r"-----BEGIN ((?:[A-Z0-9]+ )*PRIVATE KEY)-----.{40,}?(?:-----END \1-----|\Z)", re.DOTALL
)
_USERINFO = re.compile(r"://[^\s/\"]*@")
_PASSWORD_LINK = re.compile(r"://[^\s/:@\"'<>?#]*:([^\s/@\"'<>?#]+)@[a-z0-9\[]", re.IGNORECASE)
_PLACEHOLDER = re.compile(
    r"[<{\[$%*].*|.*[>}\]*]|x+|\.+"
    r"|(?:your|my|the|db|api)?[_-]?(?:p|pw|pass|passwd|password|pwd|secret|token|key|apikey)|"
    + _MADE_UP.pattern,
    re.IGNORECASE,
)


def check_secrets(view: ToolView) -> Iterator[Finding]:
    """No text contains a secret of a well-known kind."""
    kinds = _possible_kinds(view.json_text)
    for text in view.texts if kinds else ():
        kind, secret = next(
            (
                (kind, secret)
                for kind in kinds
                for secret in kind.pattern.finditer(text.value)
                if not _is_made_up(secret)
            ),
            (None, None),
        )
        if kind and secret:
            yield text.make_finding(
                view.tool,
                "secret",
                f"this looks like {kind.description}: `{secret[0][:_SHOWN_LENGTH]}...`",
                "revoke it, it is public now; then write a made-up one",
                expected="a placeholder such as `your-token`",
            )


def _possible_kinds(json_text: str) -> list[SecretKind]:
    """Return the kinds of secrets in the texts of a JSON document, made-up ones included."""
    kinds: list[SecretKind] = []
    if _SECRET_KEYWORDS.matches(json_text):
        kinds += [kind for kind in SECRET_KINDS if any(word in json_text for word in kind.keywords)]
    if _SECRET_HINTS.matches(json_text):
        kinds += [kind for kind in SECRET_KINDS if kind.hint]
    if not kinds:
        return []
    # as in the texts, an escaped line break must not join what surrounds it
    text = _JSON_ESCAPE.sub(lambda escape: "\\" if escape[0] == r"\\" else " ", json_text)
    return [kind for kind in kinds if kind.pattern.search(text)]


def _is_made_up(secret: re.Match[str]) -> bool:
    """Return whether the random part of a secret is a placeholder."""
    random_part = next(filter(None, secret.groups()), secret[0])
    return len({*random_part}) < _MIN_DISTINCT_CHARS or _MADE_UP.search(random_part) is not None


def redact_secrets(text: str) -> str:
    """Return a text in which placeholders replace its secrets."""
    text = _WHOLE_PRIVATE_KEY.sub("<private-key>", text)
    for kind in SECRET_KINDS:
        text = kind.pattern.sub(lambda match: match[0] if _is_made_up(match) else "<secret>", text)
    return text


def remove_script_links(text: str) -> str:
    """Return a text in which links that run a script have no scheme and no content."""
    return re.sub(rf"(?:{_SCRIPT_LINK.pattern})\S*", "(link removed)", text, flags=re.IGNORECASE)


def redact_link_credentials(text: str) -> str:
    """Return a text in which a placeholder replaces the passwords of links."""
    return _LINK_USERINFO.sub(r"\1user:password@", text)


def check_script_links(view: ToolView) -> Iterator[Finding]:
    """No text contains a link that runs a script when it is opened."""
    tool = view.tool
    for text in view.texts if _SCRIPT_KEYWORDS.matches(view.normalized_text) else ():
        if match := _SCRIPT_LINK.search(text.value):
            message = f"a link that runs a script where it is opened: `{match[0]}`"
            yield text.make_finding(
                tool,
                "link-script",
                message,
                "link to a page on the web, or leave it out",
                expected="an https link",
            )


def check_data_links(view: ToolView) -> Iterator[Finding]:
    """No text contains a link with embedded data."""
    tool = view.tool
    for text in view.texts if _DATA_KEYWORDS.matches(view.normalized_text) else ():
        match = _DATA_LINK.search(text.value)
        if match and not _SCRIPT_LINK.match(match[0]):
            message, help = (
                f"a link that carries {len(match[0]):,} characters which no one reads",
                "link to the file, or shorten it with `...`",
            )
            yield text.make_finding(tool, "link-data", message, help)


def check_http_links(view: ToolView) -> Iterator[Finding]:
    """No text contains an unencrypted link to a public host.

    Examples are exempt: they show values as they exist.
    """
    tool = view.tool
    for text in view.texts if _HTTP_KEYWORDS.matches(view.normalized_text) else ():
        hosts = (
            host
            for host in _HTTP_LINK.findall(text.value)
            if not (_LOCAL_HOST.fullmatch(host) or _IDENTIFIER_HOST.fullmatch(host))
        )
        if not text.is_example and (host := next(hosts, None)):
            message, help = (
                f"a link to {host} that is not encrypted",
                "write `https://`, or leave the link out",
            )
            yield text.make_finding(tool, "link-plain", message, help, expected="an https link")


def check_link_credentials(view: ToolView) -> Iterator[Finding]:
    """No link in a text contains a user name and a password."""
    tool = view.tool
    for text in view.texts if _USERINFO.search(view.json_text) else ():
        if any(
            not _PLACEHOLDER.fullmatch(password) and not _MADE_UP.search(password)
            for password in _PASSWORD_LINK.findall(text.value)
        ):
            message, help = (
                "a link with a password in it",
                "leave the password out; if it is a real one, change it where it is used",
            )
            yield text.make_finding(
                tool,
                "link-credentials",
                message,
                help,
                expected="a placeholder such as `https://user:password@host`",
            )


TEXT_CLEANERS: Mapping[str, Callable[[str], str]] = {
    "secret": redact_secrets,
    "link-script": remove_script_links,
    "link-credentials": redact_link_credentials,
}
TOOL_RULES: tuple[ToolRule, ...] = (
    ToolRule("secret", "error", check_secrets),
    ToolRule("link-script", "error", check_script_links),
    ToolRule("link-data", "warning", check_data_links),
    ToolRule("link-plain", "warning", check_http_links),
    ToolRule("link-credentials", "error", check_link_credentials),
)
