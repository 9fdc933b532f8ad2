"""The plain service: FastAPI, SQLAlchemy, and SQLite, as an engineer would write it first.

It has ORM models, JSON columns, ILIKE, and FastAPI's `GZipMiddleware`. Paths, parameters, key
check, and responses are those of our API, as far as the benchmark uses them. `python -m
benchmarks.peers.service load DATABASE ROWS` and `... serve DATABASE`; the environment variable
BENCH_KEY contains the key.
"""

import base64
import hashlib
import os
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Depends, FastAPI, Header, HTTPException, Request
from fastapi.middleware.gzip import GZipMiddleware
from pydantic import BaseModel, ConfigDict
from sqlalchemy import JSON, ForeignKey, Select, create_engine, func, insert, or_, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, relationship

from benchmarks.constant import serve

_BATCH = 5_000


class Base(DeclarativeBase):
    """The tables."""


class ApiKey(Base):
    """A key, by its hash."""

    __tablename__ = "api_keys"
    hash: Mapped[str] = mapped_column(primary_key=True)
    project: Mapped[str]


class Toolkit(Base):
    """A toolkit."""

    __tablename__ = "toolkits"
    slug: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str]
    logo: Mapped[str]


class Tool(Base):
    """A tool, in its newest version."""

    __tablename__ = "tools"
    slug: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str]
    description: Mapped[str]
    toolkit_slug: Mapped[str] = mapped_column(ForeignKey("toolkits.slug"), index=True)
    toolkit: Mapped[Toolkit] = relationship(lazy="joined")
    version: Mapped[str]
    no_auth: Mapped[bool]
    is_deprecated: Mapped[bool]
    available_versions: Mapped[list[str]] = mapped_column(JSON)
    scopes: Mapped[list[str]] = mapped_column(JSON)
    tags: Mapped[list[str]] = mapped_column(JSON)
    input_parameters: Mapped[dict[str, Any]] = mapped_column(JSON)
    output_parameters: Mapped[dict[str, Any]] = mapped_column(JSON)
    deprecated: Mapped[dict[str, Any]] = mapped_column(JSON)


class ToolkitOut(BaseModel):
    """A toolkit in a response."""

    model_config = ConfigDict(from_attributes=True)
    slug: str
    name: str
    logo: str


class ToolOut(BaseModel):
    """A tool in a response."""

    model_config = ConfigDict(from_attributes=True)
    slug: str
    name: str
    description: str
    toolkit: ToolkitOut
    input_parameters: dict[str, Any]
    output_parameters: dict[str, Any]
    no_auth: bool
    available_versions: list[str]
    version: str
    scopes: list[str]
    tags: list[str]
    is_deprecated: bool
    deprecated: dict[str, Any]


class Page(BaseModel):
    """A page of tools."""

    items: list[ToolOut]
    next_cursor: str | None
    total_pages: int
    current_page: int
    total_items: int


def database(request: Request) -> Iterator[Session]:
    """Open a session for one request."""
    with Session(request.app.state.engine) as session:
        yield session


Database = Annotated[Session, Depends(database)]


def authorized(session: Database, x_api_key: Annotated[str, Header()] = "") -> ApiKey:
    """Return the key of a request."""
    key = session.get(ApiKey, hashlib.sha256(x_api_key.encode()).hexdigest())
    if key is None:
        raise HTTPException(401, "Unknown API key")
    return key


router = APIRouter(dependencies=[Depends(authorized)])


@router.get("/tools/{slug}", response_model=ToolOut)
def get_tool(slug: str, session: Database) -> Tool:
    """Get one tool."""
    tool = session.get(Tool, slug)
    if tool is None:
        raise HTTPException(404, "Tool not found")
    return tool


@router.get("/tools", response_model=Page)
def list_tools(
    session: Database,
    toolkit_slug: str | None = None,
    tags: str | None = None,
    include_deprecated: bool = True,
    query: str | None = None,
    limit: int = 20,
    cursor: str | None = None,
) -> dict[str, Any]:
    """List tools."""
    number = int(base64.b64decode(cursor).partition(b":")[0]) if cursor else 1
    selection = _apply_filters(select(Tool), toolkit_slug, tags, include_deprecated, query)
    total = session.scalar(select(func.count()).select_from(selection.subquery())) or 0
    items = session.scalars(
        selection.order_by(Tool.slug).offset((number - 1) * limit).limit(limit)
    ).all()
    pages = -(-total // limit)
    next_cursor = (
        base64.b64encode(f"{number + 1}:{limit}".encode()).decode() if number < pages else None
    )
    return {
        "items": items,
        "next_cursor": next_cursor,
        "total_pages": pages,
        "current_page": number,
        "total_items": total,
    }


def _apply_filters(
    selection: "Select[tuple[Tool]]",
    toolkits: str | None,
    tags: str | None,
    deprecated: bool,
    query: str | None,
) -> "Select[tuple[Tool]]":
    if toolkits:
        selection = selection.where(Tool.toolkit_slug.in_(toolkits.split(",")))
    if tags:
        tag = func.json_each(Tool.tags).table_valued("value")
        selection = selection.where(
            select(tag.c.value).where(tag.c.value.in_(tags.split(","))).exists()
        )
    if not deprecated:
        selection = selection.where(Tool.is_deprecated.is_(False))
    if query:
        fields = (Tool.slug, Tool.name, Tool.description)
        selection = selection.where(
            or_(*(field.ilike(f"%{word}%") for word in query.split() for field in fields))
        )
    return selection


app = FastAPI()
app.add_middleware(GZipMiddleware)
for prefix in ("/api/v3", "/api/v3.1"):
    app.include_router(router, prefix=prefix)


def load(path: Path, rows: Path) -> None:
    """Create the database."""
    engine = create_engine(f"sqlite:///{path}")
    Base.metadata.create_all(engine)
    with rows.open("rb") as lines, Session(engine) as session:
        session.add(
            ApiKey(
                hash=hashlib.sha256(os.environ["BENCH_KEY"].encode()).hexdigest(), project="default"
            )
        )
        stored: set[str] = set()
        while tools := [orjson.loads(line) for line in islice(lines, _BATCH)]:
            toolkits = {tool["toolkit"]["slug"]: tool["toolkit"] for tool in tools}
            session.add_all(
                Toolkit(**toolkit) for slug, toolkit in toolkits.items() if slug not in stored
            )
            session.flush()
            stored |= toolkits.keys()
            session.execute(
                insert(Tool),
                [{**tool, "toolkit_slug": tool.pop("toolkit")["slug"]} for tool in tools],
            )
        session.commit()


def run(path: Path) -> None:
    """Serve the database."""
    app.state.engine = create_engine(f"sqlite:///{path}", connect_args={"check_same_thread": False})
    serve(app)


if __name__ == "__main__":
    command, *paths = sys.argv[1:]
    file = Path(paths[0])
    load(file, Path(paths[1])) if command == "load" else run(file)
