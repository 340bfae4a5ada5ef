"""Planted secrets of every kind, made at run time so that no literal here looks like one.

``planted()`` gives cases: a text as a person or an agent would write it, and the needles of
which not one may survive. Bodies are random but the same in every run.
"""

from __future__ import annotations

import base64
import json
import random
import string
from dataclasses import dataclass

UPPER, LOWER, DIGITS = string.ascii_uppercase, string.ascii_lowercase, string.digits
ALNUM = UPPER + LOWER + DIGITS
URLSAFE = ALNUM + "-_"
HEX = "0123456789abcdef"


@dataclass(frozen=True)
class Planted:
    """A text with secrets in it; ``needles`` are what must be gone."""

    name: str
    text: str
    needles: tuple[str, ...]


def body(seed: str, length: int, alphabet: str = ALNUM) -> str:
    """Return a random word with at least one letter of each class the alphabet has."""
    source = random.Random(seed)
    letters = [source.choice(alphabet) for _ in range(length)]
    for place, kind in enumerate((DIGITS, LOWER, UPPER)):
        shared = [c for c in kind if c in alphabet]
        if shared and length > 8:
            letters[2 + place] = source.choice(shared)
    letters[0] = next(c for c in letters if c.isalnum())
    letters[-1] = next(c for c in reversed(letters) if c.isalnum())
    return "".join(letters)


# (name, prefix in pieces, length of the body, its alphabet)
PREFIXED = (
    ("openai", ("sk", "-"), 48, ALNUM),
    ("openai-project", ("sk", "-proj-"), 74, URLSAFE),
    ("openai-service", ("sk", "-svcacct-"), 60, URLSAFE),
    ("openai-admin", ("sk", "-admin-"), 60, URLSAFE),
    ("anthropic", ("sk", "-ant-api03-"), 93, URLSAFE),
    ("openrouter", ("sk", "-or-v1-"), 64, HEX),
    ("groq", ("gs", "k_"), 52, ALNUM),
    ("xai", ("xa", "i-"), 80, ALNUM),
    ("perplexity", ("pp", "lx-"), 48, ALNUM),
    ("replicate", ("r", "8_"), 37, ALNUM),
    ("github-classic", ("gh", "p_"), 36, ALNUM),
    ("github-oauth", ("gh", "o_"), 36, ALNUM),
    ("github-user", ("gh", "u_"), 36, ALNUM),
    ("github-server", ("gh", "s_"), 36, ALNUM),
    ("github-refresh", ("gh", "r_"), 36, ALNUM),
    ("github-fine", ("github", "_pat_"), 82, ALNUM + "_"),
    ("gitlab", ("gl", "pat-"), 20, URLSAFE),
    ("gitlab-runner", ("gl", "rt-"), 20, URLSAFE),
    ("gitlab-deploy", ("gl", "dt-"), 20, URLSAFE),
    ("atlassian", ("ATA", "TT3xFfGF0"), 180, URLSAFE),
    ("bitbucket", ("AT", "BB"), 32, ALNUM),
    ("slack-bot", ("xo", "xb-123456789012-"), 37, ALNUM + "-"),
    ("slack-user", ("xo", "xp-"), 60, ALNUM + "-"),
    ("slack-app", ("xa", "pp-1-"), 60, ALNUM + "-"),
    ("aws-access", ("AK", "IA"), 16, UPPER + DIGITS),
    ("aws-session", ("AS", "IA"), 16, UPPER + DIGITS),
    ("google-api", ("AI", "za"), 35, URLSAFE),
    ("google-oauth", ("ya", "29."), 80, URLSAFE),
    ("google-secret", ("GOC", "SPX-"), 28, URLSAFE),
    ("stripe-live", ("sk", "_live_"), 24, ALNUM),
    ("stripe-restricted", ("rk", "_live_"), 24, ALNUM),
    ("stripe-webhook", ("wh", "sec_"), 32, ALNUM),
    ("twilio-key", ("S", "K"), 32, HEX),
    ("sendgrid", ("S", "G.", body("sg", 22, URLSAFE), "."), 43, URLSAFE),
    ("mailgun", ("ke", "y-"), 32, HEX),
    ("brevo", ("xkey", "sib-"), 64, HEX),
    ("npm", ("np", "m_"), 36, ALNUM),
    ("pypi", ("py", "pi-AgEIcHlwaS5vcmc"), 120, URLSAFE),
    ("rubygems", ("ruby", "gems_"), 48, HEX),
    ("docker", ("dckr", "_pat_"), 27, URLSAFE),
    ("huggingface", ("h", "f_"), 34, ALNUM),
    ("digitalocean", ("do", "p_v1_"), 64, HEX),
    ("heroku", ("HR", "KU-"), 60, URLSAFE),
    ("shopify", ("sh", "pat_"), 32, HEX),
    ("square", ("sq", "0atp-"), 22, URLSAFE),
    ("linear", ("lin", "_api_"), 40, ALNUM),
    ("notion-old", ("sec", "ret_"), 43, ALNUM),
    ("notion", ("nt", "n_"), 46, ALNUM),
    ("figma", ("fi", "gd_"), 40, URLSAFE),
    ("databricks", ("da", "pi"), 32, HEX),
    ("vault", ("hv", "s."), 24, ALNUM),
    ("terraform", (body("tf", 14), ".atlas", "v1."), 67, ALNUM),
    ("sentry", ("snt", "rys_"), 100, ALNUM),
    ("grafana", ("gl", "sa_"), 41, ALNUM + "_"),
    ("newrelic", ("NR", "AK-"), 27, UPPER + DIGITS),
    ("doppler", ("dp", ".pt."), 43, ALNUM),
    ("fly", ("Fly", "V1 fm2_"), 80, ALNUM),
    ("supabase", ("sb", "p_"), 40, HEX),
    ("planetscale", ("psc", "ale_tkn_"), 43, URLSAFE),
    ("postman", ("PM", "AK-"), 59, HEX + "-"),
    ("airtable", ("pa", "t", body("at", 14), "."), 64, HEX),
    ("age", ("AGE-SECRET", "-KEY-1"), 58, UPPER + DIGITS),
    ("tailscale", ("ts", "key-auth-"), 30, ALNUM),
    ("telegram", ("123456", "789:AA"), 33, URLSAFE),
    ("discord-bot", ("MT", body("db", 22), ".", body("db2", 6), "."), 38, URLSAFE),
    ("jwt", ("ey", "J", body("jw", 30), ".ey", "J", body("jw2", 60), "."), 43, URLSAFE),
    ("azure-client", (body("az", 3), "8", "Q~"), 34, ALNUM),
    ("mailchimp", (body("mc", 32, HEX), "-us"), 1, DIGITS),
    ("telegram-url", ("https://api.telegram.org/bot", "987654321:AA"), 33, URLSAFE),
    ("slack-webhook", ("https://hooks.", "slack.com/services/T0AB/B0CD/"), 24, ALNUM),
    ("discord-webhook", ("https://discord.com/", "api/webhooks/123456789012/"), 68, URLSAFE),
    ("bare-random", ("", ""), 40, ALNUM),
    ("bcrypt", ("$2", "b$12$"), 53, ALNUM),
)

# (name, text with {} where the secret stands, the secret)
NAMED = (
    ("env", "DB_PASSWORD={}\nPORT=5432", "hunter2"),
    ("env-export", 'export APP_SECRET="{}"', "s3cr3tvalue"),
    ("env-word", "PGPASSWORD={} psql -h db", "swordfish"),
    ("env-symbols", "SMTP_PASS={}", "a!b(c)d;e"),
    ("yaml", "db:\n  password: {}\n  user: app", "hunter2"),
    ("yaml-word", "password: {}\nport: 3306", "letmeinplease"),
    ("json", '{{"user": "app", "password": "{}"}}', "tr0ub4dor"),
    ("json-word", '{{"password":"{}"}}', "correcthorse"),
    ("json-escaped", '"{{\\"password\\": \\"{}\\"}}"', "tr0ub4dor"),
    ("python", 'password = "{}"', "opensesame"),
    ("python-kwarg", 'connect(host="db", password="{}", port=1)', "opensesame"),
    ("python-single", "cfg['api_key'] = '{}'", "abcdefgh12345"),
    ("javascript", "const apiKey = `{}`;", "abcdefgh12345"),
    ("typescript", 'const password: string = "{}";', "opensesame"),
    ("go", 'Password: "{}",', "opensesame"),
    ("php", "'password' => '{}',", "opensesame"),
    ("go-short", 'secret := "{}"', "opensesame"),
    ("java-setter", 'user.setPassword("{}");', "opensesame"),
    ("compare", 'if password == "{}":', "opensesame"),
    ("xml", "<password>{}</password>", "hunter2"),
    ("ini", "passwd = {}", "hunter2"),
    ("markdown", "**Password:** `{}`", "hunter2"),
    ("table", "| password | {} |", "hunter2"),
    ("flag", "deploy --password {} --verbose", "hunter2"),
    ("flag-equals", "deploy --db-password={} --verbose", "hunter2"),
    ("flag-token", "cli --token {} run", "abc123def456"),
    ("aws-secret", "aws_secret_access_key = {}", body("aws", 40, ALNUM + "/+")),
    ("aws-secret-json", '{{"SecretAccessKey": "{}"}}', body("aws2", 40, ALNUM + "/+")),
    ("azure-storage", "DefaultEndpointsProtocol=https;AccountKey={}==;X=y", body("acc", 86)),
    ("azure-sas", "https://x.blob.core.windows.net/c?sv=2022&sig={}", body("sas", 44)),
    ("conn-string", "Server=db;Database=a;User Id=u;Password={};Encrypt=yes", "hunter2"),
    ("header-key", "X-Api-Key: {}", "abc123def456ghi7"),
    ("bearer", "Authorization: Bearer {}", "abc123def456ghi7"),
    ("bearer-curl", "curl -H 'Authorization: Bearer {}' https://x.io", "abc123def456ghi7"),
    ("token-header", "Authorization: token {}", "abc123def456ghi7"),
    ("basic", "Authorization: Basic {}", base64.b64encode(b"joe:hunter2").decode()),
    ("cookie", "Cookie: theme=dark; sessionid={}; lang=en", "k3j4h5k3j4h5"),
    ("set-cookie", "Set-Cookie: sid={}; Path=/; HttpOnly", "k3j4h5k3j4h5"),
    ("query-token", "https://x.io/cb?access_token={}&state=1", "abc123def456ghi7"),
    ("npmrc", "//registry.example.org/:_authToken={}", "abc123def456ghi7"),
    ("netrc", "machine x.io login joe password {}", "swordfish"),
    ("url-postgres", "postgres://app:{}@db:5432/app", "hunter2"),
    ("url-mysql", "mysql+pymysql://root:{}@localhost/app", "swordfish"),
    ("url-mongo", "mongodb+srv://u:{}@cluster0.mongodb.net", "hunter2"),
    ("url-redis", "redis://:{}@cache:6379/0", "hunter2"),
    ("url-amqp", "amqp://guest:{}@mq:5672", "hunter2"),
    ("url-https", "git clone https://joe:{}@git.example.org/r.git", "hunter2"),
    ("url-at", "postgres://app:{}@db/app", "p@ss1w"),
    ("mysql-flag", "mysql -u root -p{} app", "S3cret"),
    ("sshpass", "sshpass -p '{}' ssh joe@host", "hunter2"),
    ("docker-login", "docker login -u joe -p {} registry.io", "hunter2"),
    ("redis-cli", "redis-cli -h x -a {} ping", "hunter2"),
    ("curl-user", "curl -u joe:{} https://x.io", "hunter2"),
    ("sql-user", "ALTER USER joe WITH PASSWORD '{}';", "opensesame"),
    ("sql-identified", "CREATE USER joe IDENTIFIED BY '{}';", "opensesame"),
    ("requirepass", "requirepass {}", "swordfish"),
    ("rails", "SECRET_KEY_BASE={}", body("rails", 128, HEX)),
    ("django", "SECRET_KEY = 'django-insecure-{}'", body("dj", 40)),
    ("datadog", "DATADOG_API_KEY={}", body("dd", 32, HEX)),
    ("twilio-auth", "TWILIO_AUTH_TOKEN={}", body("tw", 32, HEX)),
    ("heroku-uuid", "HEROKU_API_KEY=01234567-89ab-4cde-8f01-{}", body("hk", 12, HEX)),
    ("said-english", "my password is {}", "hunter2"),
    ("said-word", "My password is {}.", "swordfish"),
    ("said-staging", "the password for the staging db is {}, try it", "hunter2"),
    ("said-reverse", "{} is my password", "hunter2"),
    ("said-next", "log in as admin with password {}", "hunter2"),
    ("said-key", "my api key is {}", "abc123def456ghi7"),
    ("said-token", "the token is {}", "abc123def456ghi7"),
    ("said-german", "mein Passwort ist {}", "hunter2"),
    ("said-german-2", "Das Kennwort lautet {}.", "Geheim123"),
    ("said-french", "mon mot de passe est {}", "hunter2"),
    ("said-spanish", "mi contraseña es {}", "hunter2"),
    ("said-chinese", "我的密码是{}。", "hunter2"),
    ("said-chinese-colon", "密码：{}", "hunter2"),
    ("said-japanese", "パスワードは {} です", "hunter2"),
    ("said-japanese-colon", "パスワード：{}", "hunter2"),
    ("said-portuguese", "minha senha é: {}", "hunter2"),
    ("said-russian", "пароль: {}", "hunter2"),
    ("passphrase", 'passphrase = "{}"', "correct horse battery staple"),
    ("passphrase-bare", "passphrase: {}", "correct horse battery staple"),
    ("aws-example", "aws_secret_access_key={}", body("awsx", 33, ALNUM + "/") + "EXAMPLE"),
    ("quoted-blank", "password: '{}'", "p@ss w0rd"),
    ("pw", "pw: {}", "hunter2"),
    ("pass", "user: joe, pass: {}", "hunter2"),
    ("passcode", "the passcode is {}", "482913"),
    ("arrow", "password → {}", "hunter2"),
    ("dash", "Password - {}", "hunter2"),
    ("parentheses", "admin (password {})", "hunter2"),
    ("xml-value", '<add key="Password" value="{}"/>', "hunter2"),
    ("triple-quotes", 'password = """{}"""', "hunter2"),
    ("bearer-letters", "Authorization: Bearer {}", "qzjvkxwpmnbtrhgfyduc"),
    ("mongo", "mongosh -u joe -p {} db", "hunter2"),
    ("yaml-secret", "secret_key: {}", "qzjvkxwpmnbtrhgfyduc"),
    ("private", "before <private>{}</private> after", "anything at all"),
    ("private-open", "before <private>\n{}", "anything at all"),
    ("private-upper", "before <PRIVATE>{}</PRIVATE>", "anything at all"),
    ("card", "card {} exp 12/29", "4111 1111 1111 1111"),
    ("card-dashes", "pay with {}.", "5500-0000-0000-0004"),
    ("card-plain", "number: {}", "4242424242424242"),
    ("card-amex", "amex {}", "3782 822463 10005"),
    ("iban", "IBAN {}", "DE89 3704 0044 0532 0130 00"),
    ("iban-plain", "send it to {}", "GB29NWBK60161331926819"),
    ("ssn", "SSN {}", "123-45-6789"),
    (
        "seed-phrase",
        "seed phrase: {}",
        "legal winner thank year wave sausage worth useful legal winner thank yellow",
    ),
)
PEM_KINDS = ("RSA ", "EC ", "DSA ", "OPENSSH ", "ENCRYPTED ", "", "PGP ")


def pem(kind: str) -> str:
    """Return a block that looks like a private key of this kind."""
    lines = [body(f"{kind}{number}", 64, ALNUM + "+/") for number in range(8)]
    label = "PRIVATE " + ("KEY BLOCK" if kind == "PGP " else "KEY")
    return "\n".join([f"-----BEGIN {kind}{label}-----", *lines, f"-----END {kind}{label}-----"])


def tokens() -> list[tuple[str, str]]:
    """Return (name, secret) of everything that is known by its own letters."""
    return [
        (name, "".join(pieces) + body(name, length, letters))
        for name, pieces, length, letters in PREFIXED
    ]


# The places a token is met in: {} is the token.
PLACES = (
    ("alone", "{}"),
    ("sentence", "Use {}, please."),
    ("end", "the token: {}."),
    ("quotes", 'call("{}")'),
    ("backticks", "run with `{}` now"),
    ("fence", "```sh\nexport X={}\n```"),
    ("line", "first\n{}\nlast"),
    ("escaped-line", "first\\n{}\\nlast"),
    ("markdown", "**{}** and [{}](x)"),
    ("json", '{{"value":"{}"}}'),
    ("brackets", "({})"),
)


# Wrapped or broken over lines: first and second half, and the whole in base64.
WRAPPED = (
    ("base64", "data:\n  key: {coded}"),
    ("base64-command", "echo {coded} | base64 -d > key"),
    ("file", "cat /home/joe/keys/{whole}.txt"),
    ("folder", "ls /tmp/key_{whole}/a.json"),
    ("archive", "tar xf backup-{whole}.tar.gz"),
    ("line-end", "the key:\n{first}\n{second}\nend"),
    ("backslash", "export KEY={first}\\\n{second}\nmake"),
    ("backslash-indented", "KEY={first}\\\n    {second}\n"),
    ("sum", 'key = "{first}" +\n    "{second}"\n'),
    ("implicit-sum", "key = (\n    '{first}'\n    '{second}'\n)"),
    ("escaped", "{{'out': 'key\\n{first}\\n{second}\\nend'}}"),
    ("quoted-mail", "> {first}\n> {second}\n> end"),
)
# What no reader could tell from a digest, a number or a word that stands on the next line.
_ONE_KIND_OF_LETTERS = {
    "aws-access", "aws-session", "airtable", "telegram", "azure-client", "mailchimp", "bare-random",
    "bcrypt", "discord-bot", "openrouter", "slack-user", "postman",
}  # fmt: skip


def wrapped() -> list[Planted]:
    """Return the tokens in base64, in file names, and broken in the middle over two lines."""
    cases = []
    for name, secret in tokens():
        coded = base64.b64encode(secret.encode()).decode()
        half = len(secret) // 2
        parts = {"whole": secret, "first": secret[:half], "second": secret[half:], "coded": coded}
        for place, template in WRAPPED:
            broken = "{second}" in template
            if (broken or "{whole}" in template) and name in _ONE_KIND_OF_LETTERS:
                continue
            needles = (secret[half:],) if broken else (secret, coded)
            cases.append(Planted(f"{name}/{place}", template.format(**parts), needles))
    return cases


def planted() -> list[Planted]:
    """Return every case of the corpus."""
    cases = [
        Planted(f"{name}/{place}", template.format(*[secret] * template.count("{}")), (secret,))
        for name, secret in tokens()
        for place, template in PLACES
    ]
    cases += [Planted(name, text.format(secret), (secret,)) for name, text, secret in NAMED]
    for kind in PEM_KINDS:
        block = pem(kind)
        lines = tuple(line for line in block.split("\n") if "-----" not in line)
        flat = block.replace("\n", "\\n")
        cases += [
            Planted(f"pem/{kind}", f"key:\n{block}\nend", lines),
            Planted(f"pem-escaped/{kind}", json.dumps({"private_key": block}), lines),
            Planted(f"pem-flat/{kind}", f'KEY="{flat}"', lines),
            Planted(f"pem-cut/{kind}", block.rsplit("\n", 3)[0], lines[:-3]),
        ]
    several = [secret for _, secret in tokens()[:6]]
    cases.append(Planted("several", " ".join(several), tuple(several)))
    return cases
