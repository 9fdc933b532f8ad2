"""Header profiles: the headers that real clients send, without the API key and the request id.

`httpx` and `node` were captured from `composio-client` 1.43.0 and `@composio/client` alpha.68;
newer versions of Node add `br`. `browser` follows Chromium. `plain` supports no compression.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

MAIN = "httpx"


@dataclass(frozen=True, slots=True)
class HeaderProfile:
    """A kind of client, its title in tables, and the headers of each of its requests."""

    name: str
    title: str
    headers: Mapping[str, str]


_STAINLESS_PYTHON = {
    "User-Agent": "Composio/Python 1.43.0",
    "X-Stainless-Lang": "python",
    "X-Stainless-Package-Version": "1.43.0",
    "X-Stainless-OS": "Linux",
    "X-Stainless-Arch": "x64",
    "X-Stainless-Runtime": "CPython",
    "X-Stainless-Runtime-Version": "3.11.7",
    "X-Stainless-Async": "false",
    "x-stainless-retry-count": "0",
    "x-stainless-read-timeout": "60",
}
_STAINLESS_NODE = {
    "User-Agent": "Composio/JS 0.1.0-alpha.68",
    "X-Stainless-Retry-Count": "0",
    "X-Stainless-Lang": "js",
    "X-Stainless-Package-Version": "0.1.0-alpha.68",
    "X-Stainless-OS": "Linux",
    "X-Stainless-Arch": "x64",
    "X-Stainless-Runtime": "node",
    "X-Stainless-Runtime-Version": "v20.20.2",
}
_BROWSER = {
    "User-Agent": "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/140.0.0.0",
    "Accept": "*/*",
    "Origin": "https://app.example.com",
    "Referer": "https://app.example.com/",
    "Sec-Fetch-Site": "cross-site",
    "Sec-Fetch-Mode": "cors",
    "Sec-Fetch-Dest": "empty",
    "Accept-Encoding": "gzip, deflate, br, zstd",
    "Accept-Language": "en-US,en;q=0.9",
}
_HTTPX = {
    "Accept": "application/json",
    "Accept-Encoding": "gzip, deflate",
    "Connection": "keep-alive",
    **_STAINLESS_PYTHON,
}
_NODE = {
    "connection": "keep-alive",
    "Accept": "application/json",
    **_STAINLESS_NODE,
    "accept-language": "*",
    "sec-fetch-mode": "cors",
    "accept-encoding": "br, gzip, deflate",
}
_PLAIN = {"Accept": "application/json", "User-Agent": "plain-client/1.0"}

PROFILES = {
    profile.name: profile
    for profile in (
        HeaderProfile(MAIN, "httpx (Python clients)", MappingProxyType(_HTTPX)),
        HeaderProfile("node", "Node's fetch (TypeScript clients)", MappingProxyType(_NODE)),
        HeaderProfile("browser", "browser on another site", MappingProxyType(_BROWSER)),
        HeaderProfile("plain", "no Accept-Encoding", MappingProxyType(_PLAIN)),
    )
}
