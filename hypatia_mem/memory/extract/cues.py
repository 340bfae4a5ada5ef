"""The words by which the parts of a conversation are known, in six languages.

English, German, French, Spanish, Chinese, Japanese. Deliberately plain: a cue is one vote among
others, never a verdict.
"""

from __future__ import annotations

import re

__all__ = [
    "ANNOUNCES",
    "ASKS_HOW",
    "CAUSE",
    "CHATS",
    "CHOICE",
    "CLOSES",
    "CORRECTS",
    "DECIDES",
    "DONE",
    "ERROR",
    "EXPLORES",
    "FIX",
    "GOES_ON",
    "LOG_LINE",
    "NOW_GOOD",
    "ORDERS",
    "PASSING",
    "POINTS_BACK",
    "REVISES",
    "UNDONE",
    "WANTS",
]
ANNOUNCES = re.compile(
    r"^\W*(?:ok(?:ay)?|great|thanks|thank you|perfect|cool|nice|good|alright|right|gut|super|danke|merci|"
    r"parfait|gracias|perfecto|vale|bien|谢谢|好的?|ありがとう(?:ございます)?)?[\s,.!，。！、:-]*"
    r"(?:now\b|next\b|moving on|let'?s move on|new (?:topic|task|question)|(?:an)?other (?:topic|question|thing)|"
    r"(?:new|other|next|another) (?:problem|issue|thing|bug|ticket|one)|(?:a )?different (?:topic|question|thing|issue)|something (?:else|different)|while (?:you'?re|we'?re|i'?m|i look) at it|back to (?:work|business)|ok i'?m back|unrelated|separate(?:ly)? (?:question|topic)|"
    r"by the way|btw\b|one more thing|on (?:to )?another|switching|back to the|completely different|"
    r"(?:noch )?(?:et)?was anderes|andere[sr]?\b|nächste[rs]?\b|jetzt (?:zu|noch|was|bitte)|übrigens|neues thema|"
    r"autre (?:chose|question|sujet)|une autre|passons|maintenant|au fait|changeons|sinon\b|"
    r"otra (?:cosa|pregunta)|ahora\b|cambi(?:ando|emos) de tema|por cierto|siguiente|pasemos|"
    r"另外|另一个|换个|換個|接下来|接下來|下一个|下一個|现在(?!还|仍)|顺便|"
    r"次(?:に|は|の)|別(?:件|の)|ところで|話は変わ|続いて|あと、)",
    re.IGNORECASE,
)
GOES_ON = re.compile(
    r"^\W*(?:no\b|nope|yes\b|yeah|yep|sure|ok(?:ay)?\b|hmm|but\b|and\b|also\b|still\b|that(?:'s| is| was| does|\b)|"
    r"it(?:'s| is| does| still|\b)|this (?:is|does|still|works|fails)|those|these|they|why\b|so\b|then\b|wait|"
    r"actually|instead|same\b|again|what about|how about|can you also|could you also|please also|do it|go ahead|"
    r"continue|good|great|perfect|thanks|thank you|works|wrong|not (?:quite|what|that|exactly)|use\b.*\binstead|"
    r"nein|ja\b|doch|aber|und\b|auch\b|das\b|es\b|immer noch|warum|dann|genau|danke|falsch|nicht\b|mach\b|weiter|"
    r"non\b|oui\b|mais\b|et\b|aussi|ça|c'est|toujours|pourquoi|alors|exactement|merci|pas\b|continue|"
    r"no,|sí\b|si,|pero|y\b|también|eso|esto|todavía|sigue|por qué|entonces|exacto|gracias|mal\b|"
    r"不对|不是|不行|对|好|是的|但是|还是|还有|那|这|为什么|谢谢|继续|可以|也|"
    r"いいえ|いや|はい|でも|まだ|それ|これ|なぜ|じゃあ|ありがとう|違|続けて|いい|その|この|もう)",
    re.IGNORECASE,
)
CLOSES = re.compile(
    r"^\W*(?:thanks|thank you|thx|perfect|great|awesome|works|it works|that works|that fixed|that did it|lgtm|nice|"
    r"danke|super|perfekt|klappt|passt|funktioniert|einverstanden|confirmed|closing|no .{1,30} since|back to normal|phew|merci|parfait|ça marche|nickel|gracias|perfecto|funciona|genial|"
    r"谢谢|多谢|可以了|好了|完美|搞定|ありがとう|完璧|動きました|できました|直りました|助かりました)",
    re.IGNORECASE,
)
CORRECTS = re.compile(
    r"^\W*(?:no\b(?!\s+(?:problem|worries))|nope|wrong|that'?s (?:not|wrong)|that is (?:not|wrong)|that isn'?t|"
    r"not (?:what|like|that|quite|exactly)|i (?:meant|said|asked|wanted)|you (?:forgot|missed|broke|misunderstood|"
    r"should(?:n'?t)?)|actually|don'?t|please don'?t|stop|instead\b|rather\b|undo|revert|we (?:don'?t|never|always)|"
    r"nein|falsch|das (?:ist|war) (?:nicht|falsch)|nicht so|ich meinte|so nicht|du hast .{0,20}vergessen|doch nicht|"
    r"stattdessen|non\b|faux|ce n'est pas|c'est pas|pas comme|je voulais|tu as oublié|plutôt|"
    r"no,|eso no|está mal|así no|incorrecto|quería|te olvidaste|mejor\b|en lugar|"
    r"不对|不是|错了|錯了|不要|别|我说的是|我的意思|应该|你忘|"
    r"違|いいえ|いや|そうじゃな|ではなく|じゃなくて|間違|やめて|だめ)"
    r"|\b(?:instead of|use .{1,30} instead|should (?:be|have been)|not .{1,30}, but|is wrong|still (?:wrong|not right))\b"
    r"|而不是|ではなくて?|sondern\b|au lieu de|en vez de|en lugar de",
    re.IGNORECASE,
)
ERROR = re.compile(
    r"\b(?:error|exception|traceback|crash(?:es|ed|ing)?|bug|broken|fail(?:s|ed|ing|ure)?|panic|segfault|hangs?|"
    r"stack ?trace|undefined|nullpointer|timeout|timed out|leak(?:s|ing)?|regression|500|404|502|deadlock|flaky|"
    r"doesn'?t work|rejected|super slow|too slow|exit(?:s|ed)? with code|no data|twice|not working|does not work|stopped working|wrong (?:result|value|output)|corrupt\w*|"
    r"fehler\w*|absturz|abgestürzt|stürzt|kaputt|geht nicht|funktioniert nicht|schlägt fehl|hängt|"
    r"erreur|plante|échoue|ne (?:marche|fonctionne) (?:pas|plus)|cassé|"
    r"falla\w*|error(?:es)?|tarda|no funciona|se cuelga|se rompe|roto)\b"
    r"|[A-Z]\w+(?:Error|Exception)\b|报错|错误|失败|崩溃|异常|不工作|出错|坏了|卡住|"
    r"エラー|例外|落ち|失敗|動かな|動きません|バグ|壊れ|クラッシュ|固ま",
    re.IGNORECASE,
)
CAUSE = re.compile(
    r"\b(?:because|root cause|cause[ds]?\b|due to|the (?:problem|issue|culprit|reason) (?:is|was)|turns out|since the|"
    r"happens (?:when|because)|comes from|stems from|was (?:missing|never)|"
    r"weil|ursache|grund|liegt (?:daran|an)|lag (?:daran|an)|wegen|"
    r"parce que|à cause|la cause|cause racine|le problème (?:est|était|vient)|vient de|dû à|"
    r"porque|la causa|causa raíz|el problema (?:es|era|está)|se debe|debido a)\b"
    r"|因为|原因|根因|由于|导致|問題出在|原因は|のため|が原因|せいで|からです",
    re.IGNORECASE,
)
FIX = re.compile(
    r"\b(?:fix(?:ed|es)?|chang(?:ed|ing)|replac(?:ed|ing)|add(?:ed|ing)|remov(?:ed|ing)|mov(?:ed|ing)|"
    r"switch(?:ed|ing)|wrap(?:ped)?|pin(?:ned)?|set\b|use[ds]?\b|now\b|instead|all tests pass|resolved|"
    r"behoben|geändert|ersetzt|hinzugefügt|entfernt|jetzt|statt|"
    r"corrigé|remplacé|ajouté|supprimé|changé|désormais|maintenant|"
    r"corregid\w|arreglad\w|cambi[éa]\w*|reemplac\w+|añad\w+|elimin\w+|ahora)\b"
    r"|修复|改成|改为|替换|添加|删除|现在|換成|直し|修正|変更|追加|削除|置き換え",
    re.IGNORECASE,
)
REVISES = re.compile(
    r"^\W*(?:you(?:'re| are) right|my mistake|sorry|changed|fixed|removed|corrected|updated|renamed|shortened|reverted|noted|"
    r"done[:,]|all .{1,30} now\b|\w+ uses? .{1,60} now|the .{1,40} (?:is|are) gone|"
    r"geändert|korrigiert|entfernt|du hast recht|stimmt|corrigé|changé|retiré|tu as raison|"
    r"cambiado|corregido|quitado|tienes razón)\b"
    r"|^\W*(?:已(?:修改|改|删除|更正)|修正しました|変更しました)|ように修正|に変更しました",
    re.IGNORECASE,
)
DONE = re.compile(
    r"\bI(?:'ve| have)? (?:raised|pinned|added|moved|changed|set|removed|froze|wrapped|excluded|replaced|fixed|switched|made|ran|"
    r"put|restarted|reverted|patched|bumped|rewrote|updated|disabled|enabled|escaped|closed|cached|committed)\b"
    r"|\b(?:fixed|resolved|repaired)\b|(?:^|[.;:] )(?:Changed|Fixed|Removed|Added|Moved|Set)\b|\bpasses?\b|\btests pass\b"
    r"|\bich habe\b.{0,120}\b\w+(?:t|en)\b|\bbehoben\b|\bj'ai (?:ajouté|remis|mis|changé|corrigé|déplacé|remplacé|supprimé)\b"
    r"|\b(?:lo )?(?:añadí|moví|cambié|corregí|quité|puse|arreglé|he (?:añadido|cambiado|corregido|movido))\b"
    r"|我(?:把|在|将|已)|已(?:修复|添加|修改|改)|(?:修正|追加|変更|更新|削除)し(?:、|ました|、|て)",
    re.IGNORECASE | re.MULTILINE,
)
ASKS_HOW = re.compile(
    r"\b(?:how (?:do|can|would|could) (?:i|you|we)|what(?:'s| is) the (?:command|option|flag|way)|where (?:do|does|can|is|are)|"
    r"can you give me|write (?:a|me|the)|generate|convert|give me|implement|create|rewrite|summari[sz]e|review|"
    r"wie (?:kann|setze|mache|bekomme|lösche|finde|stelle)\w* (?:ich|man|wir)|schreib\w*|leg\b|erstell\w*|"
    r"comment (?:je|on|faire|afficher|limiter|lancer|\w+er)|écris|ajoute|"
    r"cómo (?:hago|puedo|se|hacer|\w+o)|escribe|implementa)\b"
    r"|怎么|如何|写一?个?|帮我|方法は|には[？?]|オプションは|(?:実装|追加|作成)して|^\W*(?:写|加|实现|生成)",
    re.IGNORECASE,
)
POINTS_BACK = re.compile(
    r"\b(?:it|its|them|they|that|those|these|this|there|though|then|here|one|ones|same|"
    r"es|das|sie|davon|dafür|daran|dort|ihn|ça|cela|celui|lui|leur|en|y|eso|esto|ese|ello|lo|le|ahí)\b|这|那|它|それ|これ|その|この|あれ",
    re.IGNORECASE,
)
ORDERS = re.compile(
    r"^\W*(?:please |kindly |can you (?:please )?|could you (?:please )?|now |next,? )*"
    r"(?:add|append|write|change|rename|make|create|implement|convert|review|generate|update|remove|delete|move|set|build|explain|"
    r"summari[sz]e|translate|refactor|rewrite|prepare|put|give|show|list|run|use|upgrade|fix up|draft|split|extract|document|find|look|"
    r"tell|help|let'?s|do|try|check|compare|"
    r"(?:bitte )?(?:schreib|leg|füg|änder|mach|erstell|bau|zeig|erklär|benenn|fass|prüf|nimm|setz|entfern|lösch|gib|stell)\w*|"
    r"(?:ajoute|écris|crée|mets|change|renomme|prépare|fais|génère|explique|montre|supprime|remplace|traduis|résume)\w*|"
    r"(?:añade|escribe|crea|cambia|haz|pon|quita|genera|prepara|implementa|convierte|explica|muestra|borra|traduce|resume)\w*)\b"
    r"|^\W*(?:请|帮我|给|把|写|加|做|生成|实现|解释|介绍|改)|(?:して|書いて|作って|教えて|見せて)(?:ください|下さい|ほしい|もらえ\S*|ね)?[。.!！]?$",
    re.IGNORECASE,
)
WANTS = re.compile(
    r"\b(?:i(?:'d| would) like|i(?:'m| am) (?:torn|trying|thinking|looking|wondering)|we (?:need|want|have) to|i (?:want|need)|let us|"
    r"wir (?:müssen|wollen|brauchen|sollten)|ich (?:möchte|will|brauche)|on (?:veut|doit|voudrait)|je (?:veux|voudrais|dois)|"
    r"(?:quiero|queremos|necesito|necesitamos|tenemos que))\b|想(?!不)|需要|打算|たい(?:です|と思)|必要",
    re.IGNORECASE,
)
NOW_GOOD = re.compile(
    r"\b(?:now (?:become|becomes?|only|just|uses?|goes|works|passes|returns|stays)|goes through|works again|no longer|"
    r"jetzt|stimmt wieder|gehen? auf|läuft wieder|maintenant|aucun doublon|de nouveau|ahora|ya (?:avanza|abre|funciona|no))\b"
    r"|现在|改成|ようにしました|ようにしたので|通りました|直りました",
    re.IGNORECASE,
)
CHOICE = re.compile(
    r"\b(?:vs\.?|versus|trade-?offs?|pros (?:and|&) cons|options?\b|alternatives?|should (?:we|i) (?:use|go|pick|choose|"
    r"store|put|split|keep)|which (?:one|is better|should|would you|database|library|approach)|"
    r"decide between|torn between|what speaks for|which (?:of|do you)|better to|compare|do we .{1,60} or|should .{1,80} or|"
    r"oder (?:lieber|doch|besser)|vor- und nachteile|welche[rs]? .{0,30}(?:besser|nehmen)|abwägung|sollen wir|in frage|"
    r"ou (?:plutôt|bien)|avantages|inconvénients|lequel|quelle (?:base|approche|option)|vaut-il mieux|faut-il|devrait-on|"
    r"o (?:mejor|bien)|ventajas|desventajas|cuál|deberíamos|conviene)\b"
    r"|还是(?!不|没|有|报|失|会|同|一样)|(?:觉得|用|选)?哪(?:个|种)(?:更|好|合适)|优缺点|利弊|取舍|选择哪|应该用|"
    r"どちら|どっち|それとも|メリット|比較|トレードオフ|べきでしょうか|べきか",
    re.IGNORECASE,
)
DECIDES = re.compile(
    r"\b(?:let'?s (?:go|use|do|take|keep|pick)|go(?:ing)? with|we(?:'ll| will) (?:use|go|take|keep)|decided|agreed|"
    r"sounds good, (?:use|go)|then (?:use|we)|it is|then$|go(?:ing)? for|we go|decision|nehmen wir|einverstanden|in ordnung|wir nehmen|machen wir|dann .{1,30}\bnehmen|entschieden|"
    r"d'accord|on prend|prenons|on part sur|on garde|va pour|décidé|"
    r"de acuerdo|así que|vamos con|usemos|nos quedamos|decidido|usaremos)\b"
    r"|就用|那就|决定|采用|选(?!择)|にしましょう|にします|で行きましょう|でいきましょう|決まり|にしよう|採用",
    re.IGNORECASE,
)
EXPLORES = re.compile(
    r"\b(?:how (?:does|do|is|are|would|might)|explain|what (?:are|is|does|happens|would)|why (?:does|do|is|are)|overview|"
    r"understand|walk me through|tell me (?:about|more)|explore|investigate|look into|what if|could we|"
    r"wie (?:funktioniert|geht|ist|sind|würde)|erklär\w*|was (?:ist|sind|passiert|macht|wäre)|überblick|verstehen|"
    r"comment|explique\w*|qu'est-ce|pourquoi|comprendre|aperçu|"
    r"cómo|explica\w*|qué (?:es|son|pasa|hace)|por qué|entender|resumen)\b"
    r"|怎么|如何|解释|什么是|是什么|为什么|了解|介绍|原理|"
    r"どう(?!やら)|説明|とは|なぜ|仕組み|教えて|概要",
    re.IGNORECASE,
)
CHATS = re.compile(
    r"^\W*(?:hi\b|hello|hey|good (?:morning|evening|night)|how are you|thanks|thank you|thx|ok(?:ay)?\b|cool|nice|bye|"
    r"see you|lol|haha|what time|who are you|are you there|you there|test\b|ping\b|"
    r"hallo|guten (?:morgen|tag|abend)|moin|danke|tschüss|wie geht|bonjour|salut|ça va|merci|au revoir|"
    r"hola|buen(?:os|as)|qué tal|gracias|adiós|你好|早上好|在吗|谢谢|再见|こんにちは|おはよう|ありがとう|お疲れ)",
    re.IGNORECASE,
)
# Nothing of these is a lesson: what passes by, and how hard somebody tried.
PASSING = re.compile(
    r"/tmp/|/var/folders/|\b(?:retrying|attempt \d+|let me (?:check|look|try|see|read|run)|i'?ll (?:check|look|try|start|"
    r"run|read)|looking at|running|thank(?:s| you)|you(?:'?re| are) welcome|glad (?:it|to)|happy to help|sure[,!]|of course|"
    r"gern geschehen|ich schaue|de rien|je regarde|de nada|voy a (?:mirar|ver))\b|不客气|我来看看|どういたしまして|見てみます",
    re.IGNORECASE,
)
LOG_LINE = re.compile(
    r"0x[0-9a-f]{4,}|^\W*(?:\[?\d{4}-\d\d-\d\d|\d\d:\d\d:\d\d|DEBUG|TRACE|INFO)\b"
)
UNDONE = re.compile(
    r"\b(?:to-?do|fixme|not (?:yet|done|finished|implemented)|still (?:need|have|has|missing|to do|open|failing|fails)|"
    r"remain(?:s|ing)\b|left to do|next steps?|unfinished|we(?:'ll| will) (?:need|have) to|later we|follow-?up|blocked (?:by|on)|"
    r"noch (?:nicht|offen|zu tun|fehlt)|fehlt noch|offen(?: ist| bleibt)?|nächste[rn]? schritte?|"
    r"reste à|il reste|pas encore|prochaine étape|à faire|falta(?:n)?\b|queda(?:n)? (?:por|pendiente)|pendiente|todavía no|próximo paso)\b"
    r"|还没|尚未|待办|下一步|剩下|未完成|まだ(?!.{0,6}ない[？?])|未対応|残り|次のステップ|やること",
    re.IGNORECASE,
)
