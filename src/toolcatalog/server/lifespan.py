"""Server lifespan: how an application learns that its server stops."""

import asyncio

from starlette.types import Message, Receive


async def receive_lifespan(receive: Receive) -> Message:
    """What the server says next to an application's lifespan: the end, too, when uvicorn only
    breaks off, as it does at a second Ctrl-C.
    """
    try:
        return await receive()
    except asyncio.CancelledError:
        return {"type": "lifespan.shutdown"}
