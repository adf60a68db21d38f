"""The page's server: for this machine alone, and for whoever has the token."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence
from contextlib import suppress
from socket import socket
from typing import Any
from urllib.parse import urlencode

from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets
from tornado.web import Application, RequestHandler

from cprsim.commands.explore.page import Explored
from cprsim.errors import CprsimError, ParameterError, watch
from cprsim.pages.answer import Answer
from cprsim.scenario.yaml_text import dump_plain

HOST = "127.0.0.1"
POLICY = (
    "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'nonce-{}'; "
    "connect-src 'self'; base-uri 'none'; frame-ancestors 'none'"
)


def serve(explored: Explored, sets: Sequence[str], port: int) -> Answer:
    """Serve the page until its button ends it; return the answer for its last values."""
    with suppress(RuntimeError):  # there is none, but in a notebook
        asyncio.get_running_loop()
        raise ParameterError("a notebook can't wait for the page: call `cprsim explore`")
    try:
        sockets = bind_sockets(port, HOST)
    except OSError as error:
        message = f"{port} can't be had ({error.strerror}); 0 takes a free one"
        raise ParameterError(message, option="--port") from None
    return asyncio.run(_served(explored, sets, sockets))


async def _served(explored: Explored, sets: Sequence[str], sockets: list[socket]) -> Answer:
    port, token = sockets[0].getsockname()[1], secrets.token_urlsafe(24)
    ended: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
    shared = {"explored": explored, "token": token, "ended": ended, "cookie": f"cprsim-{port}"}
    handlers = [("/(|answer|scenario.yaml|end)", Served, shared)]
    HTTPServer(Application(handlers, log_function=lambda _: None)).add_sockets(sockets)
    query = urlencode([("token", token), *(("set", one) for one in sets)])
    watch.warn(f"open http://{HOST}:{port}/?{query} (Ctrl-C ends it)")
    explored.answer_today  # noqa: B018 - while the browser starts
    return await ended


class Served(RequestHandler):
    """Answers whoever has the token, in the address or in a cookie; 403 to all others."""

    def initialize(self, explored: Explored, token: str, ended: Any, cookie: str) -> None:
        self.explored, self.token, self.ended, self.cookie = explored, token, ended, cookie
        self.nonce = secrets.token_urlsafe(16)
        self.set_header("Cache-Control", "no-store")
        self.set_header("Content-Security-Policy", POLICY.format(self.nonce))

    def prepare(self) -> None:
        """Refuse another name of this machine too: the page of another site could use it."""
        given = self.get_query_argument("token", "") or self.get_cookie(self.cookie, "") or ""
        is_known = secrets.compare_digest(given.encode(), self.token.encode())
        if not is_known or self.request.host_name not in (HOST, "localhost"):
            self.set_status(403)
            self.finish("403: open the address that `cprsim explore` printed, with its token\n")

    def get(self, path: str) -> None:
        sets, explored = self.get_query_arguments("set", strip=False), self.explored
        try:
            if self.get_query_argument("token", ""):  # a cookie from here on: links are without it
                self.set_cookie(self.cookie, self.token, httponly=True, samesite="Lax")
                self.redirect(f"/?{urlencode([('set', one) for one in sets])}")
            elif path == "answer":
                is_coarse, pixels = (int(self.get_query_argument(of)) for of in ("coarse", "width"))
                self.finish(explored.shown(sets, is_coarse=bool(is_coarse), pixels=pixels))
            elif path == "scenario.yaml":
                self.set_header("Content-Type", "application/yaml")
                self.finish(dump_plain(dict(explored.loaded(sets).data)))
            elif path == "end" and self.request.method == "POST":  # the command prints the answer
                self.ended.set_result(explored.answer(sets))
                self.finish({})
            else:
                self.finish(explored.page(sets, self.nonce))
        except CprsimError as error:
            self.finish({"error": str(error)})

    post = get
