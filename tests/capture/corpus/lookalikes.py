"""Texts that look like secrets, or speak of them, and hold none: not a byte of them may change."""

from __future__ import annotations

import base64
import hashlib
import json
import uuid

SHA1 = hashlib.sha1(b"a commit").hexdigest()
SHA256 = hashlib.sha256(b"an image").hexdigest()
_B64 = "ZXhhbXBsZSBvZiBhIGRpZ2VzdCB0aGF0IGlzIG5vIHNlY3JldCBhdCBhbGwgYnV0IGxvbmcgMDEyMzQ1Njc4OQ"


def _digest(algorithm: str, of: str) -> str:
    return hashlib.new(algorithm, of.encode()).hexdigest()


def _base64(algorithm: str, of: str) -> str:
    return base64.b64encode(hashlib.new(algorithm, of.encode()).digest()).decode()


def _uuid(of: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_URL, of))


# What documentation prints, in pieces: no literal here looks like a key.
EXAMPLES = (
    "AKIA" + "IOSFODNN7EXAMPLE",
    "AKIA" + "I44QH8DHBEXAMPLE",
    "ASIA" + "IOSFODNN7EXAMPLE",
    "wJalrXUtnFEMI/" + "K7MDENG/bPxRfiCYEXAMPLEKEY",
    "je7MtGbClwBF/" + "2Zp9Utk/h3yCo8nvbEXAMPLEKEY",
    "sk_test_" + "4eC39HqLyjWDarjtT1zdp7dc",
    "sk_test_" + "BQokikJOvBiI2HlWgH4olfQ2",
    "AIza" + "SyDaGmWKa4JsXZ-HjGw7ISLn_3namBGewQe",
    "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIiwi"
    + "aWF0IjoxNTE2MjM5MDIyfQ.SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c",
)

# The six kinds that are mistaken most often.
BY_KIND: dict[str, tuple[str, ...]] = {
    "git commit": tuple(
        text.format(_digest("sha1", text), _digest("sha1", text + "2"))
        for text in (
            "git show {}",
            "commit {}\nAuthor: Joe <joe@example.org>",
            "git diff {}..{}",
            "git revert --no-edit {}",
            "index {:.7}..{:.7} 100644",
            "HEAD is now at {:.7} Add the parser",
            "tree {}\nparent {}",
            "see https://github.com/owner/repository/commit/{}",
            "git+https://github.com/owner/repository.git@{}#egg=repository",
            "merge base: {}",
            "Subproject commit {}",
            "uses: actions/checkout@{} # v4",
            "bisect says {} is the first bad commit",
            "- [x] cherry-picked {:.10} from main ({:.10})",
        )
    ),
    "uuid": tuple(
        text.format(_uuid(text))
        for text in (
            "{}",
            "session {} has ended",
            "DELETE FROM orders WHERE id = '{}';",
            "GET /api/v1/users/{}/orders",
            '{{"id": "{}", "name": "Joe"}}',
            "request_id={} status=500",
            "trace_id: {}",
            "urn:uuid:{}",
            "/dev/disk/by-uuid/{}",
            "UUID={} / ext4 defaults 0 1",
            "class Device(models.Model):  # {}",
            "correlation-id {} was logged twice",
            "open /tmp/run-{}/out.txt",
            "tenant {} sees an empty page",
        )
    ),
    "hash": (
        f"md5 {_digest('md5', 'a')}",
        f"{_digest('sha256', 'b')}  dist/app.tar.gz",
        f"sha512:{_digest('sha512', 'c')}",
        f"etag {_digest('md5', 'd')}",
        f"image app@sha256:{_digest('sha256', 'e')}",
        f'"integrity": "sha512-{_base64("sha512", "f")}"',
        f"integrity sha384-{_base64('sha384', 'g')}",
        f"golang.org/x/text v0.14.0 h1:{_base64('sha256', 'h')}",
        f"--hash=sha256:{_digest('sha256', 'i')}",
        f"checksum = {_digest('sha256', 'j')}",
        f"SHA256:{_base64('sha256', 'k').rstrip('=')} joe@host (ED25519)",
        f"content hash {_digest('sha1', 'l')} differs from {_digest('sha1', 'm')}",
        f"app.{_digest('sha1', 'n')[:20]}.js is 120 kB",
        f"blake2b {_digest('blake2b', 'o')}",
    ),
    "path": (
        "/usr/lib/x86_64-linux-gnu/libstdc++.so.6.0.30",
        "/home/dev/.cache/pip/wheels/3f/2c/1a/package-1.2.3-py3-none-any.whl",
        f"/nix/store/{_digest('sha1', 'nix')[:32]}-python3-3.11.9/bin/python3",
        f"~/.cargo/registry/src/index.crates.io-{_digest('md5', 'crate')[:16]}/serde-1.0.193",
        f".git/objects/{_digest('sha1', 'git')[:2]}/{_digest('sha1', 'git')[2:]}",
        "node_modules/@babel/plugin-transform-modules-commonjs/lib/index.js:42:17",
        "C:\\Program Files (x86)\\Microsoft Visual Studio\\2019\\BuildTools\\VC\\Tools\\MSVC\\14.29.30133",
        "src/main/java/org/example/app2/ConnectionPoolFactoryImplV2Test.java",
        "packages/web/src/components/DataTableV2/useColumnResize3.test.tsx",
        "/var/lib/docker/overlay2/" + _digest("sha256", "overlay") + "/merged/etc/hosts",
        "/private/var/folders/x1/2b3c4d5e6f7g8h9i0jklmnop0000gn/T/pytest-of-joe/pytest-12",
        f"/tmp/.mount_app{_digest('md5', 'mount')[:6]}/usr/share/icons",
        "s3://bucket-eu-west-1/2024/01/02/part-00000-of-00128.snappy.parquet",
        "tests/__snapshots__/Header2.test.tsx.snap: 14 snapshots obsolete",
    ),
    "icon": tuple(
        text.format(icon)
        for text, icon in (
            (
                "<img src='data:image/png;base64,{}'>",
                "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==",
            ),
            (
                "background: url(data:image/gif;base64,{})",
                "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7",
            ),
            (
                '"icon": "data:image/gif;base64,{}"',
                "R0lGODdhAQABAPAAAP8AAAAAACwAAAAAAQABAAACAkQBADs=",
            ),
            (
                "const EMPTY = 'data:image/gif;base64,{}';",
                "R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw==",
            ),
            (
                "data:image/svg+xml;base64,{}",
                base64.b64encode(b'<svg xmlns="http://www.w3.org/2000/svg"/>').decode(),
            ),
            (
                "list-style: url(data:image/svg+xml;base64,{})",
                base64.b64encode(b'<svg viewBox="0 0 8 8"><circle r="4"/></svg>').decode(),
            ),
            (
                "![dot](data:image/png;base64,{})",
                "iVBORw0KGgoAAAANSUhEUgAAAAUAAAAFCAYAAACNbyblAAAAHElEQVQI12P4//8/w38GIAXDIBKE0DHxgljNBAAO9TXL0Y4OHwAAAABJRU5ErkJggg==",
            ),
            (
                "icons/dot.ico: data:image/x-icon;base64,{}",
                base64.b64encode(
                    bytes.fromhex("000001000100101000000000000068050000160000")
                ).decode(),
            ),
            (
                "@font-face {{ src: url(data:font/woff2;base64,{}) }}",
                base64.b64encode(b"wOF2" + bytes(range(24))).decode(),
            ),
            (
                "<link rel='icon' href='data:;base64,{}'>",
                "iVBORw0KGgo=",
            ),
            (
                "webp: data:image/webp;base64,{}",
                "UklGRh4AAABXRUJQVlA4TBEAAAAvAAAAAAfQ//73v/+BiOh/AAA=",
            ),
            (
                "jpeg: data:image/jpeg;base64,{}",
                "/9j/4AAQSkZJRgABAQEASABIAAD/2wBDAAMCAgICAgMCAgIDAwMDBAYEBAQEBAgGBgUGCQgKCgkICQkKDA8M",
            ),
        )
    ),
    "example key": (
        *EXAMPLES,
        "aws_access_key_id = " + EXAMPLES[0] + "\naws_secret_access_key = " + EXAMPLES[3],
        "export AWS_SECRET_ACCESS_KEY=" + EXAMPLES[3],
        '{"AccessKeyId": "' + EXAMPLES[2] + '", "SecretAccessKey": "' + EXAMPLES[3] + '"}',
        "curl https://api.stripe.com/v1/charges -u " + EXAMPLES[5] + ":",
        "Authorization: Bearer " + EXAMPLES[8],
        "SLACK_TOKEN=xoxb-your-token",
        "GITHUB_TOKEN=ghp_" + "x" * 36,
        "ANTHROPIC_API_KEY=sk-ant-...",
        "OPENAI_API_KEY=sk-...",
        'api_key = "<YOUR_API_KEY>"',
        "OPENAI_API_KEY=sk-your-key-here",
        "password: changeme",
    ),
}

LOOKALIKES = (
    *(text for texts in BY_KIND.values() for text in texts),
    f"commit {SHA1}",
    f"fixed in {SHA1[:7]} and {SHA1[:12]}",
    f"sha256:{SHA256}",
    f"FROM python@sha256:{SHA256}",
    f'"integrity": "sha512-{_B64}=="',
    f"integrity sha384-{_B64}",
    f"github.com/x/y v1.2.3 h1:{_B64[:43]}=",
    f"SHA256:{_B64[:43]} joe@host (ED25519)",
    'resolved "https://registry.example.org/left-pad/-/left-pad-1.3.0.tgz#' + SHA1 + '"',
    "01234567-89ab-4cde-8f01-23456789abcd",
    "/home/dev/.claude/projects/-home-dev-project/01234567-89ab-4cde-8f01-23456789abcd.jsonl",
    "src/components/UserProfile2/SettingsPanelV3/IndexPage.tsx",
    "C:\\Users\\Joe\\AppData\\Local\\Programs\\Python\\Python311\\python.exe",
    "org.springframework.boot.autoconfigure.jdbc.DataSourceAutoConfiguration",
    "AbstractSingletonProxyFactoryBeanConfigurationSupport",
    "test_forget_withholds_summaries_of_the_forgotten_turn",
    "MAX_CONCURRENT_CONNECTIONS_PER_HOST_V2",
    "getHttpResponseCode2FromUpstreamProxyV3",
    "from hypatia_mem.store.connection import open_store",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
    "url(data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7)",
    "color: #ff8800; background: #1a2b3c4d",
    "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
    "version 1.24.3-rc.1+build.20240102",
    "2024-01-02T03:04:05.678901+00:00",
    "at 1700000000123 and 1700000000123456789 ns",
    "call +1 555 123 4567 or 0049-30-123456",
    "0.12345678901234567",
    "ids 1234567890123456 and 9999999999999999",
    "isbn 978-3-16-148410-0",
    'password = os.environ["DB_PASSWORD"]',
    'password = os.getenv("DB_PASSWORD", "")',
    "password: str",
    "password: Optional[str] = None",
    "def login(user: str, password: str) -> Token:",
    "token = get_token()",
    "token = await self.client.refresh_token(user_id)",
    "api_key=None",
    "api_key=settings.OPENAI_API_KEY",
    "secret = config.get('app', 'secret')",
    '"password": {"type": "string"}',
    '{"password": null, "token": ""}',
    "password: z.string().min(8)",
    "private readonly token: string;",
    "password = user_password",
    "if (password !== confirmPassword) {",
    "PASSWORD_MIN_LENGTH = 12",
    "max_tokens: 4096",
    "max_tokens=200000, tokens_used=1234567",
    '"token_type": "bearer"',
    'next_token = response["NextToken"]',
    "import sk-learn as sklearn",
    "task-1234-migrate-the-authentication-module",
    "disk-usage-monitoring-dashboard-configuration",
    "secret_key_base is read from credentials.yml.enc",
    "https://example.org/a/b?page=2&sort=name#top",
    "https://docs.example.org/d/1BxiMVs0XRA5nFMdKvBdBZjgmUUqptlbs74OgvE2upms/edit",
    "https://www.youtube.com/playlist?list=PLrAXtmErZgOeiKm4sgNOknGvNjby9efdf",
    "https://registry.example.org/@types/node",
    "http://localhost:8080/@vite/client",
    "https://medium.com/@joe/a-story-about-ports-8080",
    "git@github.com:owner/repository.git",
    "scp file joe@host:/var/www",
    "mail joe.doe@example.org",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGq7Zb0t8bq0V0m0h3sFzX0n0qf0Hj2c9T8k1w4d5e6f joe@host",
    "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQC7Zb0t8bq0V0m0h3sFzX0n0qf0Hj2c9T8k1w4d5e6f joe@host",
    "-----BEGIN PUBLIC KEY-----\n" + _B64[:64] + "\n-----END PUBLIC KEY-----",
    "-----BEGIN CERTIFICATE-----\n" + _B64[:64] + "\n-----END CERTIFICATE-----",
    "grep -r 'BEGIN RSA PRIVATE KEY' .",
    "look for -----BEGIN PRIVATE KEY----- in the repository",
    "Authorization: Bearer <your-token>",
    "Authorization: Bearer $TOKEN",
    "curl -H 'Authorization: Bearer ${GITHUB_TOKEN}' https://api.github.com",
    "curl -u $USER:$PASS https://x.io",
    "API_KEY=your-api-key-here",
    "API_KEY=xxxxxxxxxxxxxxxxxxxx",
    "password: ********",
    "sk-" + "x" * 40,
    "ghp_" + "x" * 36,
    "PASSWORD=${PASSWORD}",
    "PASSWORD=$DB_PASSWORD",
    "PASSWORD=$(cat /run/secrets/db)",
    "token: ${{ secrets.GITHUB_TOKEN }}",
    "const key = process.env.API_KEY;",
    "apiKey: process.env.OPENAI_API_KEY",
    "password: {{ vault_db_password }}",
    "password: !secret db_password",
    "WHERE password = :password",
    "the tokenizer splits on spaces",
    "the secret to success is patience",
    "please fix the password reset flow",
    "The password is hashed with bcrypt before it is stored.",
    "the token is expired after 30 minutes",
    "the password field is required",
    "Basic usage of Bearer tokens",
    "basic authentication is disabled",
    "cookies are enabled; set SameSite=Lax",
    "primary key: id",
    "press any key: continue",
    "keyboard: us-intl",
    "the `<private>` tag hides text",
    'type="password" name="password" autocomplete="current-password"',
    'placeholder="Enter your password"',
    'label: "Password must have 8 characters"',
    "postgres://user:password@localhost/db",
    'password: "Choose a password of 8 characters or more"',
    'tooltip: "the passphrase is for the key", passphrase: used for the key only',
    'fields = ["user", "password", "email", "phone"]',
    'register("password", "required")',
    'fromSessionId: "session-abc-123456"',
    "convertOldToNewHypaV2Data",
    "docker run mongo -p 27017:27017",
    "12 pass, 3 fail; pass: 12, fail: 3",
    "password (sha256) and password (v2.1)",
    "AWS_SECRET_ACCESS_KEY=your-secret-access-key-here",
    "postgres://$USER:$PASS@host/db",
    "mysql -u root -p app_db",
    "docker run -p 8080:80 nginx",
    "mkdir -p src/app && cp -a x y",
    "toolu_01A09q90qw90lq917835lq9aB3",
    "PWD=/home/dev/project",
    "cd $PWD && pwd",
    "author: Joe",
    "authors = ['Joe']",
    "signature: (a: number) => void",
    "密码重置流程有问题",
    "パスワードのリセットを直して",
    "das Passwort wird nicht gespeichert",
    "[REDACTED:password] was here",
    "password=[REDACTED:password]",
)

PROMPTS = (
    "Please refactor the parser in src/parser.py so that it handles nested lists and add tests.",
    "why does `npm run build` fail with ERR_MODULE_NOT_FOUND?",
    "add a dark mode toggle to the settings page",
    f"revert {SHA1} and explain what it changed",
    "Run the tests and fix whatever fails.",
    "What does this do?\n```python\ndef f(x):\n    return [y for y in x if y]\n```",
    "rename `fetchUserProfileById` to `loadProfile` everywhere in packages/web/src",
    "the deploy of 2024-03-01T10:20:30Z failed, see https://ci.example.org/runs/1234567",
    "@src/app/main.ts explain the event loop here",
    "Upgrade react from 18.2.0 to 19.0.0",
    "write a migration that adds an index on orders(customer_id, created_at)",
    "Can you make the CSS less ugly? color: #ff8800 is too bright",
    "docker compose up fails: port 5432 is already allocated",
    "explain the difference between a mutex and a semaphore",
    "git rebase went wrong, HEAD is detached at 3f2c1ab",
    "use pnpm instead of npm",
    "Let's design the schema for the blog: posts, tags, comments",
    "the test test_forget_withholds_summaries_of_the_forgotten_turn is flaky",
    "给这个函数加上类型注解，然后跑一下测试",
    "この関数にテストを追加してください",
    "Bitte schreibe die Dokumentation für das Modul capture",
    "Ajoute un test pour le parseur, s'il te plaît",
    "Agrega pruebas para el analizador",
    "🎉 ship it",
    "TypeError: Cannot read properties of undefined (reading 'map')\n    at App.tsx:42:17",
    'Traceback (most recent call last):\n  File "a.py", line 3, in <module>\n    1/0\nZeroDivisionError: division by zero',
    "continue",
    "yes, do it",
    "mkdir -p build && cmake -S . -B build -DCMAKE_BUILD_TYPE=Release",
    "compare p50 and p95: 12.5 ms against 48.9 ms",
    "find . -name '*.py' | xargs wc -l | sort -n",
    "The order 20240102-000123 has 3 items",
)
ANSWERS = (
    "I've updated `src/parser.py`:\n\n1. `parse_list` now recurses.\n2. Added 4 tests.\n\nAll 128 tests pass.",
    'The failure comes from `package.json`: `"type": "module"` is missing.',
    "Done. I changed 3 files:\n- `src/app/main.ts`\n- `src/app/theme.css`\n- `tests/theme.test.ts`",
    f"Commit {SHA1[:12]} touched the scheduler; I reverted it.",
    "```diff\n-    return x\n+    return [y for y in x if y is not None]\n```",
    "A mutex is owned; a semaphore counts. See https://en.wikipedia.org/wiki/Semaphore_(programming)",
    "```sql\nCREATE INDEX idx_orders ON orders (customer_id, created_at);\n```",
    "| file | lines |\n|---|---|\n| a.py | 120 |\n| b.py | 80 |",
    "```ts\nexport const useTheme = () => useContext(ThemeContext);\n```",
    "テストを追加しました。すべて成功しています。",
    "已添加类型注解，全部 42 个测试通过。",
    "I ran `pytest -q`: 57 passed in 3.21s.",
)

_SESSION = "df651b23-c43d-40c1-b3b9-e29ae24cd6d6"
_COMMON = {
    "session_id": _SESSION,
    "transcript_path": f"/home/dev/.claude/projects/-home-dev-project/{_SESSION}.jsonl",
    "cwd": "/home/dev/project",
    "prompt_id": "07c496df-7d1c-41d7-bc7e-bdbe3fb6de19",
}


def prompt_event(prompt: str) -> bytes:
    """Return a UserPromptSubmit input as the client writes it."""
    event = {
        **_COMMON,
        "permission_mode": "default",
        "hook_event_name": "UserPromptSubmit",
        "prompt": prompt,
    }
    return encode(event)


def stop_event(answer: str) -> bytes:
    """Return a Stop input as the client writes it."""
    event = {
        **_COMMON,
        "permission_mode": "bypassPermissions",
        "effort": {"level": "high"},
        "hook_event_name": "Stop",
        "stop_hook_active": False,
        "last_assistant_message": answer,
        "background_tasks": [],
        "session_crons": [],
    }
    return encode(event)


def encode(event: object) -> bytes:
    """Encode as the client does: UTF-8 unescaped, but lone surrogates as escapes."""
    try:
        text = json.dumps(event, ensure_ascii=False, separators=(",", ":"))
        return text.encode() + b"\n"
    except UnicodeEncodeError:
        return json.dumps(event, separators=(",", ":")).encode() + b"\n"
