"""Understands "remember ..." and "forget ..." in a prompt, without a model.

A request is an instruction: it stands at the start of the prompt or of one of its lines, after
nothing but politeness. Questions ("do you remember"), reports ("I forgot"), plain tasks ("don't
forget to add tests"), quotations, code and idioms ("forget it") are none. What is kept are the
user's own words. English, Chinese, Japanese, German, French and Spanish are understood.
"""

from __future__ import annotations

import re

__all__ = ["Request", "entry_name", "parse"]

_LONGEST_LINE = 2000  # characters; nobody dictates a rule longer than this on one line
_LONGEST_SLUG = 60
_TELLING_LINES = 8
_Row = tuple[tuple[str, ...], str, str]  # stems of which one must be there, pattern, verb


class Request:
    """What the user asked for.

    ``verb`` is "remember" or "forget", ``text`` the words after it, ``kind`` one of "rule",
    "taboo" and "memory" ("memory" for forget), ``is_global`` whether all projects are meant.
    """

    __slots__ = ("is_global", "kind", "text", "verb")

    def __init__(self, verb: str, text: str, kind: str, is_global: bool) -> None:
        """Keep the four parts."""
        self.verb = verb
        self.text = text
        self.kind = kind
        self.is_global = is_global

    def __eq__(self, other: object) -> bool:
        """Compare all parts."""
        return isinstance(other, Request) and self._parts() == other._parts()

    def __hash__(self) -> int:
        """Hash all parts."""
        return hash(self._parts())

    def __repr__(self) -> str:
        """Show all parts."""
        return f"Request{self._parts()!r}"

    def _parts(self) -> tuple[str, str, str, bool]:
        return self.verb, self.text, self.kind, self.is_global


def parse(prompt: str) -> Request | None:
    """Return the first request of the prompt, or None when it holds none."""
    if prompt.lstrip().startswith("<task-notification>"):
        return None
    # Of a long prompt (somebody's log) most lines hold none of the few stems that are in it.
    lowered = prompt.lower()
    patterns = [row for row in _PATTERNS if any(stem in lowered for stem in row[0])]
    stems = {stem for row in patterns for stem in row[0] if stem in lowered}
    if not stems and not any(row[0] in lowered for row in _ALONE):
        return None
    lines = list(_spoken_lines(prompt))
    alone = len(lines) == 1
    for number, line in enumerate(lines):
        stripped = line.strip()
        if not stripped or len(stripped) > _LONGEST_LINE:
            continue
        lowered = stripped.lower()
        if not alone and not any(stem in lowered for stem in stems):
            continue
        more = _Below(lines, number + 1)
        request = _parse_line(stripped, patterns, more, alone=alone)
        if request:
            return request
        # "Works. From now on use tabs": a request may be a line's second sentence.
        for start in _sentence_starts(stripped):
            request = _parse_line(stripped[start:], patterns, more, alone=False)
            if request:
                return request
    return None


class _Below:
    """The lines below one: taken only where that one asks for them."""

    __slots__ = ("_lines", "_start")

    def __init__(self, lines: list[str], start: int) -> None:
        self._lines, self._start = lines, start

    def first(self) -> list[str]:
        """Return so many that what they say tells whether the whole says anything."""
        return self._lines[self._start : self._start + _TELLING_LINES]

    def all(self) -> list[str]:
        return self._lines[self._start :]


def _sentence_starts(line: str) -> list[int]:
    found = [match.end() for match in re.finditer(r"[.!]\s+(?=\w)|[。！](?=\w)", line)]
    return found[:4]


def entry_name(request: Request) -> str:
    """Return the name of the entry that keeps the request: "rule:never-mock-the-database".

    The same words give the same name. Rules and taboos share "rule:", facts have "memory:".
    """
    prefix = "memory" if request.kind == "memory" else "rule"
    return f"{prefix}:{_slug(request.text)}"


def _slug(text: str) -> str:
    from unicodedata import category, normalize

    folded = normalize("NFKC", text).lower().replace("'", "").replace("\u2019", "")
    kept = (c if c.isalnum() or category(c)[0] == "M" else "-" for c in folded)
    slug = "-".join(part for part in "".join(kept).split("-") if part)
    if slug and len(slug) <= _LONGEST_SLUG:
        return slug
    from _blake2 import blake2b

    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
    short = slug[:_LONGEST_SLUG]
    if len(slug) > _LONGEST_SLUG and "-" in short[30:]:
        short = short[: short.rindex("-")]
    return f"{short}-{digest}" if short else digest


def _spoken_lines(prompt: str) -> list[str]:
    """Return the lines of the prompt that are the user's own speech: no code, no quotation."""
    lines, fence = [], ""
    for line in prompt.splitlines():
        mark = line.lstrip()[:3]
        if mark in ("```", "~~~"):
            fence = "" if fence == mark else fence or mark
        elif not fence and not line.startswith(("    ", "\t", ">")):
            lines.append(line)
    return [line for line in lines if line.strip()]


def _parse_line(line: str, patterns: list[_Row], more: _Below, *, alone: bool) -> Request | None:
    if line[0] in "\"'`“„«「『<|#$/@{[(*_" and not line.startswith(("* ", "**")):
        return None
    lowered = line.lower()
    patterns = [row for row in patterns if any(stem in lowered for stem in row[0])]
    commands = [row for row in _ALONE if row[0] in lowered] if alone else []
    if not patterns and not commands:
        return None
    line = re.sub(r"^(?:[-*•]|\d{1,2}[.)])\s+", "", line)
    is_question = line.rstrip(" .!").endswith(("?", "？", "吗", "か", "嗎")) or (
        re.match(r"[^.!。！]{0,200}[?？]\s", line) is not None
    )
    # Compiling what politeness looks like is dear: most requests begin with the verb.
    request = None if is_question else _match(patterns, line, line, more)
    if request:
        return request
    spoken = re.sub(_POLITE, "", line, count=1, flags=re.IGNORECASE)
    asked = line[: len(line) - len(spoken)].lower()
    if is_question and not re.search(_ASKING, asked):
        return None
    if spoken != line and (request := _match(patterns, spoken, line, more)):
        return request
    for _, pattern, kind in commands:
        if re.match(pattern, spoken, re.IGNORECASE):
            return Request("remember", _trim(spoken), kind, _is_global(spoken))
    return None


def _match(patterns: list[_Row], spoken: str, line: str, more: _Below) -> Request | None:
    for _, pattern, verb in patterns:
        match = re.match(pattern, spoken, re.IGNORECASE)
        if match:
            return _request(verb, match, line, more)
    return None


def _request(verb: str, match: re.Match[str], line: str, more: _Below) -> Request | None:
    text = _trim(match["text"] or "")
    negative = _NOT_REMEMBERED if verb != "forget" else _NOT_FORGOTTEN
    if not text and verb == "remember":  # "Remember:" and a list below it
        if re.match(negative, _listed(more.first()), re.IGNORECASE):
            return None
        text = _listed(more.all())
    elif re.match(negative, text, re.IGNORECASE):
        return None
    elif verb == "remember" and line.endswith((":", "：")):
        bullets = [
            item.strip() for item in more.all() if re.match(r"\s*(?:[-*•]|\d{1,2}[.)])\s", item)
        ]
        text = "\n".join([text, *bullets])
    if not _says_something(text) or re.match(negative, text, re.IGNORECASE):
        return None
    if verb == "forget":
        if re.search(_MOVES_ON, text, re.IGNORECASE):
            return None
        return Request("forget", text, "memory", _is_global(line))
    first = text.split("\n", 1)[0].lstrip("-*• ")  # of a list, the first item says its kind
    kind = _kind(first, to_do=bool(match.groupdict().get("todo")))
    if verb == "from now on" and kind == "memory":
        kind = "rule"
    return Request("remember", text, kind, _is_global(line))


def _listed(items: list[str]) -> str:
    return "\n".join(item.strip() for item in items).strip()


def _trim(text: str) -> str:
    text = text.strip().rstrip("?？").strip()
    if len(text) > 1 and text[0] in _QUOTES and text[-1] == _QUOTES[text[0]]:
        text = text[1:-1].strip()
    return text[:-1].rstrip() if text.endswith((".", "。")) and not text.endswith("..") else text


_QUOTES = {'"': '"', "'": "'", "“": "”", "„": "“", "«": "»", "「": "」", "`": "`"}


def _says_something(text: str) -> bool:
    bare = text.strip(" .!,:;").lower()
    if bare in _EMPTY_WORDS:
        return False
    return len([c for c in bare if c.isalnum()]) >= (3 if bare.isascii() else 2)


_EMPTY_WORDS = frozenset(
    {
        "true", "false", "null", "none", "me", "this", "that", "it", "yes", "no", "us", "you", "them",
        "everything", "all", "all of it", "all that", "all of that", "about it", "about that",
        "about this", "the above", "das", "es", "dies", "alles", "ça", "cela", "tout", "pas", "eso",
        "esto", "todo", "lo", "这", "这个", "那个", "它", "了", "それ", "これ", "あれ", "そのこと",
    }
)  # fmt: skip

# What may precede the instruction without making it anything else.
_POLITE = (
    r"^(?:(?:ok(?:ay)?|hey|hi|hello|so|and|also|oh|btw|by the way|one more thing|important|note|"
    r"claude|hey claude|please|pls|plz|kindly|just|"
    r"(?:can|could|would|will) you(?: please)?|i(?:'d| would) like you to|i want you to|"
    r"i need you to|you (?:should|must|need to|have to)|let's|"
    r"bitte|also|und|ach ja|kannst du(?: bitte)?|könntest du(?: bitte)?|"
    r"s'il (?:te|vous) plaît|stp|svp|merci de|peux-tu|pourrais-tu|et|"
    r"por favor|y|puedes|podrías|"
    r"请你?|請你?|麻烦你?|麻煩你?|帮我|幫我|你要|一定要|务必|另外|还有)"
    r"(?:\s*[,，、:!;-]\s*|\s+|(?=[^\x00-\x7f])))+"
)
_ASKING = (
    r"can you|could you|would you|will you|kannst du|könntest du|peux-tu|pourrais-tu|puedes|podrías"
)

# What a standing order commands.
_VERBS = (
    "use|prefer|run|write|ask|check|test|commit|format|lint|name|explain|answer|respond|reply|speak|"
    "follow|read|review|document|squash|rebase|sign|pin|type|annotate"
)
_EVERYWHERE = r"(?:\s+(?:globally|everywhere|(?:for|in|across) (?:all|every)(?: (?:my|our|the|of my))? projects?))?"
# (stems of which one must be in the line before the pattern is worth compiling, pattern, verb)
_PATTERNS: tuple[tuple[tuple[str, ...], str, str], ...] = (
    # English
    (("remember", "memori"),
     rf"(?:always )?(?:remember|memori[sz]e){_EVERYWHERE}(?:(?:\s+(?:this|the following|that))?"
     rf"\s*[:：]|\s+that\b|(?P<todo>\s+to\b)|\s*,|\s+-)?(?=\W|$)(?!\s*[(_.=;])(?P<text>(?:\s.*|$))",
     "remember"),
    ((" memory",),
     r"(?:save|add|store|put|commit|write)(?: this| it| that)?(?: rule| fact)? (?:to|in|into)"
     r" (?:your |the |my )?(?:long[- ]term )?memory\s*[:,-]?(?:\s+that\b)?\s+(?P<text>.+)", "remember"),
    ((" note",),
     r"(?:make|take) a (?:mental )?note(?: that\b|\s*:|\s+of:?|(?P<todo>\s+to\b))\s*(?P<text>.+)",
     "remember"),
    (("keep in mind", "bear in mind"),
     r"(?:keep|bear) in mind(?:\s+that\b|\s*[:,])?\s+(?P<text>.+)", "remember"),
    (("remember that", "remember this", "remember it"),
     r"(?P<text>.{8,}?)[.,;:]\s*(?:and |so |please )*remember (?:that|this|it)"
     r"(?: (?:for|in|from) [\w ]{3,30})?[\s.!]*$", "remember"),
    (("future session", "next time", "next session", "note to self"),
     r"(?:fyi,? |remember |a note |note |one note )*(?:(?:in|for) (?:all |any )?(?:future sessions?|the next session|next time)"
     r"|note to self(?: for [\w ]{3,20})?)\s*[:,-]\s*(?P<text>.+)", "remember"),
    (("save this", "keep this", "note this"),
     r"(?:save|keep|note) this(?: down)?(?: for (?:later|the future|future sessions?|next time))?\s*[?:,-]\s*(?P<text>.+)",
     "remember"),
    (("rule",),
     r"(?:(?:make (?:it|this) a|new|house|project|standing) rule|rule for (?:this|the) (?:repo|project|codebase))\s*[:,-]\s*(?P<text>.+)",
     "from now on"),
    (("future reference", "for later"),
     r"(?:for future reference|notes? for later)\s*[:,]\s*(?P<text>.+)", "remember"),
    (("t forget that", "not forget that"),
     r"(?:don[’']?t|do not|never) forget that\s+(?P<text>.+)", "remember"),
    (("future",),
     rf"in (?:the )?future,?\s+(?P<text>(?:please |always |never |don[’']?t |do not |(?:{_VERBS})\s).+)",
     "from now on"),
    (("from now on", "from here on", "going forward", "henceforth"),
     r"(?:from (?:now|here) on(?:wards?|\s+out)?|going forward|henceforth)\s*,?\s+(?P<text>.+)",
     "from now on"),
    (("forget", "unlearn"),
     r"(?:forget|unlearn)(?!\s*[(_.=:;-]?[(_.=;-])(?:\s*[:：])?\s+"
     r"(?:about\s+(?!it\b|that\b|this\b)|that\s+)?(?P<text>.+)", "forget"),
    (("can forget", "forget about"),
     r"(?:.{5,120},\s*so\s+)?(?:you (?:can|may|should) (?:now |again )?)?forget (?:that|about(?! it\b)|the|what)\s+(?P<text>.+)", "forget"),
    (("you remember", "you know about"),
     r"(?:remove|delete|erase|drop|wipe|forget) (?:everything|all|what(?:ever)?) (?:that )?you (?:remember|know|stored|saved)"
     r" (?:about|of|on)\s+(?P<text>.+)", "forget"),
    ((" memory",),
     r"(?:remove|delete|erase|drop|wipe)(?: this| that)?(?: from)? (?:the |your |my |our )?memor(?:y|ies)"
     r"(?:\s*:|\s+(?:about|that|of(?! the)|on))\s*(?P<text>.+)", "forget"),
    (("stop remembering",), r"stop remembering\s+(?:that\s+|about\s+)?(?P<text>.+)", "forget"),
    ((" memory",),
     r"(?:remove|delete|erase|drop|wipe)\s+(?P<text>.+?)\s+from (?:your |the |my )?memory\W*$",
     "forget"),
    # Chinese
    (("记住", "記住", "记下", "記下", "记得", "記得", "记一下", "記一下"),
     r"(?:请|請|千万|千萬)*(?:记住|記住|记下|記下|记得|記得|记一下|記一下)(?!不|了吗|吗|密码|密碼|我的?(?:功能|选项))[了来]?\s*[：:，,、]?\s*(?P<text>.+)",
     "remember"),
    (("从现在", "從現在", "从今", "今后", "以后"),
     r"(?:从现在(?:开始|起)|從現在(?:開始|起)|从今以后|从今往后|今后|以后(?=每次|凡是|都|请|一律|总是|始终|不要|别|必须))"
     r"\s*[，,：:]?\s*(?P<text>.+)", "from now on"),
    (("忘", "记忆"),
     r"(?:请|請)?把(?P<text>.+?)(?:忘掉|忘了|忘记|忘記|从记忆中删除)吧?[。.!！]?$", "forget"),
    (("记忆", "記憶"),
     r"(?:请|請)?(?:把|将|將)(?:这个|這個|这条|下面的?)?(?:存|保存|记|記|加)(?:到|进|入)(?:你的)?(?:记忆|記憶)(?:里|中)?\s*[：:，,]?\s*(?P<text>.+)",
     "remember"),
    (("记忆", "記憶"),
     r"(?:请|請)?从(?:你的)?(?:记忆|記憶)(?:里|中)?(?:删除|刪除|删掉|去掉|清除)\s*(?P<text>.+)", "forget"),
    (("记忆", "記憶"),
     r"(?:请|請)?(?:把|将|將)?(?:关于|關於)?(?P<text>.+?)的(?:记忆|記憶)(?:删除|刪除|删掉|刪掉|清除)[吧了]?[。.!！]?$",
     "forget"),
    (("再记", "再記"), r"(?:不用|不必|别|別|不要)再(?:记住|記住|记得|記得|记|記)(?P<text>.+?)了?[。.!！]?$",
     "forget"),
    (("忘",), r"(?:请|請)?(?:忘记|忘記|忘掉)(?!了|密码|密碼)(?:关于)?\s*[：:，,]?\s*(?P<text>.+)",
     "forget"),
    (("请忘了", "請忘了"), r"(?:请|請)忘了\s*(?P<text>.+)", "forget"),
    # Japanese
    (("覚え", "記憶", "メモリに保存"),
     r"(?:(?:これを|次のことを|以下を)?(?:覚えて(?:おいて)?|記憶して(?:おいて)?)(?:ください|下さい|ね)?"
     r"|メモリに保存(?:して(?:ください)?)?)\s*[：:、,。\s]\s*(?P<text>.+)", "remember"),
    (("メモ",), r"メモして(?:おいて)?(?:ください|下さい|ね)?\s*[：:、,。\s]\s*(?P<text>.+)", "remember"),
    (("記憶",),
     r"(?P<text>.+?)(?:について|に関する|に関して)?の記憶を(?:削除|消去|消)して(?:ください|下さい|ね)?[。.!！]?$",
     "forget"),
    (("覚え", "おぼえ", "記憶"),
     r"(?P<text>.+?)(?:ということ)?(?:を|と|って|は)?、?(?:必ず)?(?:覚えて(?:おいて)?|覚えといて"
     r"|おぼえて(?:おいて)?|記憶して(?:おいて)?)(?:ください|下さい|ね|くれ|ほしい)?[。.!！]?$", "remember"),
    (("メモリ", "メモから"),
     r"(?P<text>.+?)(?:の件)?を?(?:メモリ|メモ|記憶)から(?:削除|消去|消)して(?:ください|下さい|ね)?[。.!！]?$", "forget"),
    (("次回から",), r"次回から(?:は)?\s*、?\s*(?P<text>.+)", "from now on"),
    (("今後", "これから"), r"(?:今後は|今後(?!の|も)|これからは|これから(?!の|も))\s*、?\s*(?P<text>.+)", "from now on"),
    (("忘れ", "わすれ"),
     r"(?P<text>.+?)(?:のこと|について|に関して)?(?:は|を|も)?(?:忘れて|わすれて)"
     r"(?:ください|下さい|ね|くれ|いい(?:です)?(?:よ)?)?[。.!！]?$", "forget"),
    # German
    (("vergiss nicht", "vergessen sie nicht"),
     r"(?:vergiss|vergessen sie)(?: bitte)? nicht,?\s+da(?:ss|ß)\s+(?P<text>.+)", "remember"),
    (("erinnerung",),
     r"(?:lösche?|entferne|streiche?)(?: bitte)? die erinnerung(?:en)? (?:an|über|zu[mr]?)\s+(?P<text>.+)",
     "forget"),
    (("kannst", "darfst"),
     r"du (?:kannst|darfst)(?: jetzt| wieder)? vergessen,?\s+da(?:ss|ß)\s+(?P<text>.+)", "forget"),
    (("merk", "erinnere dich", "denk", "behalt", "notier", "dir merken"),
     r"(?:merke? dir|merkt euch|merken sie sich|erinnere dich(?: daran)?|denke? dr?an"
     r"|denke? daran|kannst du dir merken|behalte? im (?:kopf|hinterkopf)|notiere? dir)(?: bitte)?(?: überall| global| für alle projekte)?\s*[:,]?\s+"
     r"(?:da(?:ss|ß)\s+)?(?P<text>.+)", "remember"),
    (("für die zukunft", "fürs nächste mal"), r"(?:für die zukunft|fürs nächste mal)\s*[:,-]\s*(?P<text>.+)", "remember"),
    (("ab jetzt", "ab sofort", "von nun an", "künftig"),
     r"(?P<text>(?:bitte )?\w+(?:e|t|en)? (?:bitte )?(?:ab jetzt|ab sofort|von nun an|künftig)\b.+)", "from now on"),
    (("gedächtnis",),
     r"(?:lösche?|entferne|streiche?)(?: bitte)?\s+(?P<text>.+?)\s+aus deinem gedächtnis\W*$", "forget"),
    (("vergessen",), r"(?P<text>.+?)\s+(?:kannst|darfst) du (?:jetzt |wieder |ruhig )?vergessen\W*$", "forget"),
    (("ab jetzt", "ab sofort", "ab heute", "von jetzt an", "von nun an", "künftig", "in zukunft"),
     r"(?:ab (?:jetzt|sofort|heute)|von (?:jetzt|nun) an|künftig|in zukunft)\s*,?\s+(?!(?:wird|werden|kann|können|soll(?:en)?|will|wollen|gibt)\b)(?P<text>.+)",
     "from now on"),
    (("vergiss", "vergesst", "vergessen"),
     r"(?:vergiss|vergesst|vergessen sie)(?: bitte)?\s*[:,]?\s+(?:da(?:ss|ß)\s+)?(?P<text>.+)",
     "forget"),
    # French
    (("souven", "souvien", "rappel", "retien", "retenez", "émorise"),
     r"(?:souviens-toi|rappelle-toi|souvenez-vous|rappelez-vous|retiens|retenez|mémorise[zr]?)"
     r"(?: bien)?(?: partout)?\s*[:,]?\s*(?:que\s+|qu['’]|(?P<todo>de\s+|d['’]))?(?P<text>.+)",
     "remember"),
    (("note que", "note qu'", "notez que"), r"notez? (?:bien )?(?:que\s+|qu['’])(?P<text>.+)", "remember"),
    (("peux oublier", "pouvez oublier"), r"(?:tu peux|vous pouvez) oublier\s+(?P<text>.+)", "forget"),
    (("ésormais", "orénavant", " partir de maintenant", " partir d'aujourd", "l'avenir"),
     r"(?:désormais|dorénavant|à partir (?:de maintenant|d['’]aujourd['’]hui)|à l['’]avenir)\s*,?\s+(?P<text>.+)", "from now on"),
    (("oublie",), r"n['’]oublie[zr]? pas (?:que\s+|qu['’])(?P<text>.+)", "remember"),
    (("en mémoire",),
     r"(?:garde|gardez|conserve|mets)(?: bien)? en mémoire\s*[:,]?\s*(?:que\s+|qu['’])?(?P<text>.+)", "remember"),
    (("mémoire",),
     r"(?:supprime|efface|retire|enlève)[zr]? de (?:ta|la|votre) mémoire\s*:?\s*(?P<text>.+)", "forget"),
    (("oublie",), r"oublie[zr]?\s*:?\s+(?:que\s+|qu['’])?(?P<text>.+)", "forget"),
    # Spanish
    (("recuerd", "acuérdate", "memori"),
     r"(?:recuerd[ae]|acuérdate|memoriza|memorice)(?: siempre)?\s*[:,]?\s+"
     r"(?:(?:de\s+)?que\s+|(?P<todo>de\s+))?(?P<text>.+)", "remember"),
    (("a partir de", "de ahora en adelante", "desde ahora", "en el futuro"),
     r"(?:a partir de (?:ahora|hoy)|de ahora en adelante|desde ahora|en el futuro)\s*,?\s+(?P<text>.+)", "from now on"),
    (("olvides", "olvide"), r"no (?:te )?olvid(?:es|e) (?:de )?que\s+(?P<text>.+)", "remember"),
    (("en cuenta",),
     r"ten(?:ga)? en cuenta(?: para (?:las )?(?:próximas|siguientes|futuras) sesiones)?\s*[:,]?\s*que\s+(?P<text>.+)", "remember"),
    (("próximas sesiones", "futuras sesiones"),
     r"(?:para|en) (?:las )?(?:próximas|futuras) sesiones\s*[:,-]?\s+(?P<text>.+)", "from now on"),
    (("apunta",), r"apunta(?:te)?(?: esto)?\s*(?::|\s+que\s)\s*(?P<text>.+)", "remember"),
    (("puedes olvidar",), r"puedes olvidar(?:te de)?\s+(?P<text>.+)", "forget"),
    (("memoria",),
     r"(?:guarda|anota|pon) (?:esto )?en (?:tu |la )?memoria\s*[:,]?\s*(?:que\s+)?(?P<text>.+)", "remember"),
    (("memoria",),
     r"(?:borra|elimina|quita) de (?:tu|la) memoria\s*:?\s*(?P<text>.+)", "forget"),
    (("olvid", "olvíd"),
     r"(?:olvid[ae]|olvídate de|olvidate de|olvidar)\s*:?\s+(?:que\s+|lo de\s+|sobre\s+)?"
     r"(?P<text>.+)", "forget"),
)  # fmt: skip
_NEVER_VERBS = (
    _VERBS
    + "|push|touch|edit|change|modify|delete|remove|log|print|add|rewrite|force|skip|mock|import|"
    "install|merge|deploy|call|store|guess|assume|hard-?code|expose|suggest|reformat|rename|create|"
    "disable|ignore|amend|bypass|mention|include|put|leave|send|upload|publish|downgrade|upgrade"
)
# Commands without a word of remembering count only when they are all of the prompt: what must
# stand in it, the pattern, and what it becomes.
_ALONE = (
    ("always", rf"always\s+(?:{_VERBS})\s+\S", "rule"),
    ("never", rf"never(?:\s+ever)?\s+(?:{_NEVER_VERBS})(?:-\w+)?\s+\S", "taboo"),
    ("ever", rf"(?:don[’']?t|do not)\s+ever\s+(?:{_NEVER_VERBS})\s+\S", "taboo"),
    ("from now on", r"(?:stop\s+\w+ing|never|don[’']?t|do not)\s.*\bfrom now on[\s.!]*$", "taboo"),
    ("every", rf"(?:whenever|every time)\s.+?,\s*(?:please\s+)?(?:always\s+)?(?:{_VERBS})(?:\s|$)", "rule"),
    ("when", rf"whenever\s.+?,\s*(?:please\s+)?(?:always\s+)?(?:{_VERBS})(?:\s|$)", "rule"),
    ("from now on", rf"(?:{_VERBS})\s.*\bfrom now on[\s.!]*$", "rule"),
    ("始终", r"(?:始终|始終)\S{2}", "rule"),
    ("二度と", r"(?:もう)?二度と.{3,}?(?:ないで|ないこと|ないように)(?:ください|下さい|して|ね)?[。.!！]*$", "taboo"),
    ("常に", r"常に.{3,}?(?:ように|こと|して|て)(?:ください|下さい|して|ね)*[。.!！]*$", "rule"),
    ("immer", r"(?:verwende|nutze|benutze|nimm|schreibe?|führe?|teste?|halte|antworte|frage?)\s+(?:bitte\s+)?immer\s+\S", "rule"),
    ("toujours", r"(?:utilise|écris|lance|exécute|réponds|mets|garde|vérifie|demande)[zr]?\s+toujours\s+\S", "rule"),
    ("jamais", r"n(?:e\s+|['’])\w+\s+plus\s+jamais\s+\S", "taboo"),
    ("siempre", r"(?:usa|escribe|ejecuta|pregunta|responde|comprueba|haz|pon)\s+siempre\s+\S", "rule"),
    ("no vuelvas", r"no vuelvas a\s+\S.*", "taboo"),
    ("不要", r"(?:永远|永遠|绝对|絕對|千万|千萬)不要\S{2}", "taboo"),
    ("絶対に", r"絶対に.{3,}?(?:ないで|ないこと|しないように)(?:ください|下さい|して|ね)?[。.!！]*$", "taboo"),
    ("nie", r"(?:nie(?:mals)?(?: wieder)?)\s.+\b\w+(?:en|ern|eln)[\s.!]*$", "taboo"),
    ("jamais", r"ne\s+\w+(?:-\w+)?\s+jamais\s+\S|n['’]\w+\s+jamais\s+\S", "taboo"),
    ("nunca", r"nunca\s+(?!(?:ha|he|me|se|fue|está|es|has|hemos)\b|funcion)\w+(?:s|es|as|ar|er|ir)\b\s+\S", "taboo"),
    ("siempre", r"siempre\s+(?:usa|escribe|ejecuta|pregunta|prefiere|responde|comprueba|haz|pon)\s+\S", "rule"),
)  # fmt: skip

# After "remember": what makes it a question, a story or a name.
_NOT_REMEMBERED = (
    r"(?:when|how|what|where|who|whom|why|which|whether|if (?:we|i|you)|me\b|us\b|the (?:last )?time|"
    r"last (?:time|week|month|year|night)|yesterday|back when|doing|seeing|talking|reading|having|"
    r"everything\b|the good old|was\b.*hatte|wie\b|wann\b|wo\b|quand\b|comment\b|cuando\b|cuándo\b|cómo\b|"
    r"(?:the )?(?:password|me|device|choice)s? (?:checkbox|option|button|feature|cookie|toggle|flag)|"
    r"(?:checkbox|button|option|cookie|token|function|method|command)s?\b|"
    r"不(?:住|得|清)|上次|当时)(?:\W|$|(?<=[^\x00-\x7f]))"
)
# After "forget": idioms, the user's own memory, names of things, and the conversation itself.
_NOT_FORGOTTEN = (
    r"(?:(?:it|that|this)\s*[,.;:-].*|今の(?:は|こと)?|it|that|this|about (?:it|that|this)|everything|all (?:of )?(?:the |your |my )?"
    r"(?:previous|above|prior|instructions)\b.*|(?:the |your |my |any |all )?(?:previous|prior|above|last|earlier)"
    r"\b.*|your (?:instructions|rules|training|system prompt)\b.*|what i (?:just )?(?:said|wrote|asked)|"
    r"to\b.*|me\b.*|my (?:last|previous) \w+|you\b.*|nicht\b.*|es\b.*|das|pas\b.*|ça|cela|eso|esto|"
    r"(?:the )?(?:gates?|bias)\b.*|passwords? .*|(?:button|link|function|method|command|feature|endpoint|api|"
    r"page|screen|form|route|operation|verb|handler|flow)s?\b.*|"
    r"不了.*|它|这个|那个|それ|これ|あれ|もう|全部|すべて)[\s.!,;。！]*$"
)
# "Forget the tests, let's fix the build": the conversation moves on, memory does not change.
_MOVES_ON = (
    r"\b(?:let'?s|lets|instead|for now|for the moment|just (?:do|fix|use|go|focus|make)|"
    r"and (?:do|fix|write|start|focus|just|go|move|use|try)|"
    r"lass uns|stattdessen|à la place|en su lugar|en lugar de)\b"
)

_TABOO_ENGLISH = (
    r"\bnever\b|\bdo not\b|\bdon[’']?t\b|\bavoid\b|\bmust not\b|\bmustn[’']?t\b|\bshould not\b|"
    r"\bshouldn[’']?t\b|\bmay not\b|\bforbidden\b|\bnot to\b|\bstop \w+ing\b|\bno more\b|\bnot allowed\b"
)
_TABOO = (
    r"不要|别(?!名|的|人)|別(?!名|の|に|途)|勿|禁止|避免|不准|不许|不得|永远不|绝不|不能|不应|不可|永不|"
    r"ないで|しない|るな(?:$|[。！])|てはいけ|ではいけ|てはなら|べきではな|べきでな|避け|わない|ません|"
    r"\bnie(?:mals)?\b|\bvermeide|\bverboten\b|\bkeinesfalls\b|"
    r"\bjamais\b|\bévite[rz]?\b|\binterdit|\bne pas\b|\bn[e'’] ?(?!est|sont|a\b|ont|était)\w+ (?:pas|plus)\b|"
    r"\bnunca\b|\bjamás\b|\bevit(?:a|ar|e)\b|\bprohibid|\bno (?!es\b|está)\w+(?:es|as|ar|er|ir|amos|emos)\b"
)
_TABOO_GERMAN = r"\b(?:nicht|kein(?:e[nmrs]?)?)\b"
_STATES = r"\b(?:ist|sind|war|hat|haben|gibt|heißt|läuft)\b"
_RULE_ENGLISH = (
    r"\balways\b|\bmust\b|\bshould\b|\bprefer(?:red)?\b|\bhave to\b|\bhas to\b|\bneeds? to\b|\bonly use\b|"
    r"\bwe (?:all |only |also )?(?:use|prefer|write|run|deploy|name|follow|keep|test|format|commit|call|"
    r"squash|rebase|pin|put|review|document|target|log|ship|release)\b"
)
_RULE = (
    r"总是|總是|始终|一定|必须|必須|务必|应该|應該|使用|我们用|請用|请用|要用|优先|一律|每次|"
    r"必ず|常に|いつも|べき|使う|使って|優先|すること|してください|毎回|しなければ|なければな|"
    r"\bimmer\b|\bstets\b|\bm[uü]ss(?:en)?\b|\bsoll(?:en|te|ten)?\b|\bbevorzug|\b(?:be)?nutze?n?\b|\bverwende|"
    r"\btoujours\b|\bdoi(?:t|vent)\b|\bil faut\b|\bpréf[éè]r|\butilise[rz]?\b|\butilisons\b|\bprivilégi|"
    r"\bsiempre\b|\bdeben?\b|\bhay que\b|\bprefier|\bpreferi|\busa(?:r|mos)?\b|\butiliza(?:r|mos)?\b"
)
_IMPERATIVE_ENGLISH = (
    r"(?:please )?(?:use|prefer|run|write|keep|add|put|ask|check|make|name|format|commit|test|document|"
    r"follow|read|review|reply|respond|answer|explain|speak|include|start|stick|squash|rebase|sign|pin|"
    r"call|log|wrap|update|build|deploy|install|lint|type|annotate|split|sort|order|quote|escape|validate|"
    r"handle|return|raise|throw|close|open|set|create|place|store|treat|limit|apply|give|let|leave|bump)\b"
    r"(?!\s+(?:is|was|are|were|has|lives?|runs)\b)"
)
_IMPERATIVE = (
    r"用|先|(?:lance|exécute|écris|réponds|mets|ajoute|garde|vérifie|teste)\b"
    r"|(?:führe|schreib|antworte|teste|prüfe|formatiere|halte)"
    r"|(?:ejecuta|escribe|responde|pon|añade|mantén|prueba|comprueba)\b"
)


def _kind(text: str, *, to_do: bool) -> str:
    """Return "taboo", "rule" or "memory", by the word that commands first."""
    taboo, rule = _commands(text, _TABOO_ENGLISH, _RULE_ENGLISH)
    if taboo is None and rule is None:
        if re.match(_IMPERATIVE_ENGLISH, text, re.IGNORECASE):
            return "rule"
        taboo, rule = _commands(text, _TABOO, _RULE)
        if taboo is None and not re.search(_STATES, text, re.IGNORECASE):
            taboo = re.search(_TABOO_GERMAN, text, re.IGNORECASE)
    if taboo and rule and rule.start() < taboo.start():
        # "always use X, never Y" commands; "we should never" forbids.
        between = text[rule.end() : taboo.start()]
        apart = any(mark in between for mark in ",，、;；") or (
            text.isascii() and len(between.split()) > 1
        )
        return "rule" if apart else "taboo"
    if taboo:
        return "taboo"
    if rule or to_do or re.match(_IMPERATIVE, text, re.IGNORECASE):
        return "rule"
    return "memory"


def _commands(
    text: str, taboo: str, rule: str
) -> tuple[re.Match[str] | None, re.Match[str] | None]:
    return re.search(taboo, text, re.IGNORECASE), re.search(rule, text, re.IGNORECASE)


_GLOBAL = (
    r"\beverywhere\b|\b(?:in|for|across|on) (?:all|every|each)(?: of)?(?: (?:my|our|the))? projects?\b|"
    r"(?<!install )(?<!installed )(?<!package )(?<!packages )\bglobally\b|\bglobal rule\b|"
    r"所有(?:的)?项目|所有專案|每个项目|全局(?=记|适|生效|[，,：:])|全部项目|"
    r"(?:すべて|全て|全)の?プロジェクト|どのプロジェクトでも|"
    r"\büberall\b|\bin (?:allen|jedem) projekte?n?\b|\bfür alle projekte\b|"
    r"\bpartout\b|\bdans tous (?:mes|les|nos) projets\b|\bglobalement\b|"
    r"\ben todas partes\b|\ben todos (?:mis|los|nuestros) proyectos\b|\bglobalmente\b"
)


# One of these is in every line that speaks of all projects; the pattern costs more than the look.
_GLOBAL_STEMS = (
    "where", "proje", "global", "项目", "專案", "全局", "プロジェクト", "überall", "partout", "partes",
    "proyecto",
)  # fmt: skip


def _is_global(line: str) -> bool:
    lowered = line.lower()
    if not any(stem in lowered for stem in _GLOBAL_STEMS):
        return False
    return re.search(_GLOBAL, line, re.IGNORECASE) is not None
