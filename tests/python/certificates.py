"""Certificates of servers that tests start."""

import subprocess

AUTHORITY = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=test -keyout ca.key -out ca.pem"
REQUEST = "req -newkey rsa:2048 -nodes -subj /CN=localhost -keyout worker.key -out worker.csr"
SIGN = "x509 -req -in worker.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile names -out worker.pem"


def certificates(folder, names=("localhost",)):
    """A certificate for this machine, ``worker.pem``, with its key, and that of who vouches for it, ``ca.pem``."""
    (folder / "names").write_text(f"subjectAltName=IP:127.0.0.1,{','.join(f'DNS:{name}' for name in names)}\n")
    for words in (AUTHORITY, REQUEST, SIGN):
        subprocess.run(["openssl", *words.split()], cwd=folder, check=True, capture_output=True)
