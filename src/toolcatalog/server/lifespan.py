"""Server lifespan: how an application learns that its server stops."""

import asyncio

from starlette.types import Message, Receive


async def receive_lifespan(receive: Receive) -> Message:
    """Return the next lifespan message.

    If uvicorn cancels the application without a message, as it does at a second Ctrl-C, returns a
    shutdown message.
    """
    try:
        return await receive()
    except asyncio.CancelledError:
        return {"type": "lifespan.shutdown"}
