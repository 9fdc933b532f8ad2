"""Ed25519 with the library cryptography: load PEM keys, sign and verify; needs the extra `sign`."""

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey


def load_private_key(data: bytes) -> Ed25519PrivateKey | None:
    """Load a PEM private key; None if it is no Ed25519 key.

    Raises TypeError if it is encrypted.
    """
    try:
        key = serialization.load_pem_private_key(data, None)
    except (ValueError, UnsupportedAlgorithm):
        return None
    return key if isinstance(key, Ed25519PrivateKey) else None


def load_public_key(data: bytes) -> bytes | None:
    """Load a PEM public key; return its 32 bytes, or None if it is no Ed25519 key."""
    try:
        key = serialization.load_pem_public_key(data)
    except (ValueError, UnsupportedAlgorithm):
        return None
    return key.public_bytes_raw() if isinstance(key, Ed25519PublicKey) else None


def is_valid(key: bytes, signature: bytes, message: bytes) -> bool:
    """Return whether the signature of a message is by the private half of this public key."""
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True
