"""Who may do what: bearer tokens and their roles."""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from enum import StrEnum
from ipaddress import ip_address

from sql.wire import MissingTokenError
from steward.errors import AccessError, SettingsError


class Role(StrEnum):
    """What a token allows; an administrator may do everything."""

    WRITER = "writer"
    READER = "reader"
    ENFORCER = "enforcer"
    """Records notices, acts and their audit; may not change policies, exemptions or requests."""
    ADMIN = "admin"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """The tokens a server knows. Without any, everyone who reaches it may do everything."""

    writer: tuple[str, ...] = ()
    reader: tuple[str, ...] = ()
    enforcer: tuple[str, ...] = ()
    admin: tuple[str, ...] = ()

    @property
    def is_open(self) -> bool:
        """Tell whether no token is set."""
        return not (self.writer or self.reader or self.enforcer or self.admin)

    def refuse(self, authorization: str | None, *, needs: Role) -> None:
        """Let a request pass or not.

        Raises:
            MissingTokenError: no token came, or an unknown one.
            AccessError: the token lacks the role.
        """
        if self.is_open:
            return
        roles = self._roles(authorization)
        if not roles:
            raise MissingTokenError(
                "the request carries no token that this warehouse knows",
                hint="set warehouse.token (STEWARD_WAREHOUSE_TOKEN), or ask an administrator",
            )
        if needs not in roles and Role.ADMIN not in roles:
            raise AccessError(
                f"the token's role ({', '.join(sorted(roles))}) is not {needs}",
                hint=f"use a token with the role {' or '.join(dict.fromkeys([needs, Role.ADMIN]))}",
            )

    def _roles(self, authorization: str | None) -> frozenset[Role]:
        scheme, _, token = (authorization or "").partition(" ")
        if scheme.lower() != "bearer" or not token:
            return frozenset()
        lists = {
            Role.WRITER: self.writer,
            Role.READER: self.reader,
            Role.ENFORCER: self.enforcer,
            Role.ADMIN: self.admin,
        }
        return frozenset(role for role, known in lists.items() if _is_among(token, known))


def _is_among(token: str, known: tuple[str, ...]) -> bool:
    """Compare with every token in a time that does not tell how much was right."""
    matches = [hmac.compare_digest(token.encode(), one.encode()) for one in known]
    return any(matches)


def refuse_open_bind(host: str, *, tokens: Tokens) -> None:
    """Without tokens only this machine may reach the server.

    Raises:
        SettingsError: the host is reachable from elsewhere and no token is set.
    """
    if tokens.is_open and not _is_loopback(host):
        raise SettingsError(
            f"warehouse.host {host} is reachable from other machines, but no token is set",
            hint="set warehouse.writer_tokens, reader_tokens and admin_tokens, or use 127.0.0.1",
        )


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
