"""Judge answers of a server by its OpenAPI document."""

import re
from typing import Any

import httpx
from jsonschema import Draft202012Validator


class Judge:
    """The OpenAPI document of a server, and whether an answer is what it promises."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document
        self.paths = {
            re.sub(r"\{\w+\}", "[^/]+", path): item["get"]["responses"]
            # a fixed path comes before a template that matches it
            for path, item in sorted(document["paths"].items(), key=lambda item: "{" in item[0])
        }

    def __call__(self, response: httpx.Response) -> None:
        """Fail where the answer has a status, a content type or a body that the document does not
        have at this path.
        """
        response.read()
        assert re.fullmatch("[0-9a-f]{64}", response.headers["x-catalog-snapshot"])
        if (
            response.request.method in ("HEAD", "OPTIONS")
            or response.status_code == 304
            or self._is_page(response)
        ):
            return
        if response.headers.get("content-encoding") == "zstd":  # which httpx leaves packed
            return
        schema = self._schema(_raw_path(response), response.status_code)
        assert response.headers["content-type"] == "application/json"
        problems = Draft202012Validator(
            {"components": self.document["components"], **schema}
        ).iter_errors(response.json())
        assert [f"{problem.json_path}: {problem.message}" for problem in problems] == []
        if response.status_code >= 400:
            assert response.json()["error"]["status"] == response.status_code
            assert response.json()["error"]["request_id"] == response.headers["x-request-id"]

    def _is_page(self, response: httpx.Response) -> bool:
        return response.status_code < 400 and not any(
            re.fullmatch(path, _raw_path(response)) for path in self.paths
        )

    def _schema(self, path: str, status: int) -> dict[str, Any]:
        for pattern, responses in self.paths.items():
            if re.fullmatch(pattern, path) and status != 405:
                answer = responses[str(status)]
                if "$ref" in answer:
                    answer = self.document["components"]["responses"][
                        answer["$ref"].rpartition("/")[2]
                    ]
                results: dict[str, Any] = answer["content"]["application/json"]["schema"]
                return results
        return {"$ref": "#/components/schemas/Error"}


def _raw_path(response: httpx.Response) -> str:
    """The path as it was sent: `%2F` is no slash."""
    return response.request.url.raw_path.partition(b"?")[0].decode()
