"""Find in a sentence what a summary may lose: numbers, dates, names, file names, and instructions.

By patterns in six languages, without a model; bench/history.md has the accuracy. Pure.
"""

import re
from collections.abc import Iterator
from typing import Literal

from rag_assistant.retrieval.claims import NAME
from rag_assistant.retrieval.languages import language_of
from rag_assistant.retrieval.tokenize import OPTIONAL, STOP_WORDS, search_words

FactKind = Literal["instruction", "number", "date", "name", "file"]

FILE = re.compile(
    r"(?<![\w-])(?:(?:[A-Za-z]:|~|\.{1,2})?[\\/])?(?:[\w.-]{1,100}[\\/]){0,20}[\w-][\w.-]{0,100}"
    r"\.(?:[a-z][a-z0-9]{1,4}|[A-Z][A-Z0-9]{1,4})(?![A-Za-z0-9])|(?<!\S)\.[a-z]{2,}\b"
)
# A single digit only counts with a unit: "3 km", but not "Question 3.".
NUMBER = re.compile(
    r"(?:[€$£¥+]\s?)?(?:\d+(?:[\s.,:/'\u2019\u00d7\u2013-]{1,3}\d+)+|\d{2,}|(?<=[€$£¥])\d|\d(?=\s?[%€$£¥°]|\s?[^\W\d_]))"
    r"(?:\s?[%€$£¥°]|\s?[^\W\d_]{1,12})?"
)
MONTHS = (
    "january|february|april|june|july|august|september|october|november|december|januar|februar|märz|juni|juli|"
    "oktober|"
    "dezember|janvier|février|(?:fin|début|mi|en|\\d) mars|avril|juin|juillet|août|septembre|octobre|novembre|"
    "décembre|"
    "enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre|octubre|noviembre|diciembre|"
    "(?:in|by|until|since|of|next|last|early|late|im|am|en|fin) (?:march|may|mai)"
)
DAYS = (
    "(?:mon|tues|wednes|thurs|fri|satur|sun)days?|(?:mon|diens|donners|frei|sams|sonn)tags?|mittwochs?|sonnabend|"
    "lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche|lunes|martes|miércoles|jueves|viernes|sábado|domingo"
)
DATE = re.compile(
    rf"(?:\b\d{{1,2}}(?:\.|st|nd|rd|th|er)?\s(?:de\s)?)?\b(?:{MONTHS}|{DAYS})\b(?:\s(?:de\s)?\d{{4}})?|"
    r"\b\d{4}-\d\d-\d\d\b|\b\d{1,2}[./]\d{1,2}[./]\d{2,4}\b|(?<!\d)\d+\s?[年月日号]|"
    "(?:星期|周|礼拜)[一二三四五六日天末]|الاثنين|الإثنين|الثلاثاء|الأربعاء|الخميس|الجمعة|السبت|الأحد|"
    "يناير|فبراير|أبريل|مايو|يونيو|يوليو|أغسطس|سبتمبر|أكتوبر|نوفمبر|ديسمبر",
    re.IGNORECASE,
)
SURNAMES = "王李张刘陈杨黄赵吴周徐孙马朱胡郭何林罗高郑梁谢宋唐许韩冯邓曹彭曾肖田董潘袁蔡蒋余于杜叶程魏苏吕丁任沈姚卢姜崔钟谭陆汪范金石廖贾夏韦付方白邹孟熊秦邱江尹薛闫段雷侯龙史陶黎贺顾毛郝龚邵万钱严覃武戴莫孔向汤"  # noqa: E501
CHINESE_NAME = re.compile(
    rf"(?:(?<=[是叫找问给了和与跟由请让向对为等，。：、])|^|(?<=联系))[{SURNAMES}][\u4e00-\u9fff]{{1,2}}(?=[，。！？、；]|$|负责|会|将|说|签|的|和|与|在)|"  # noqa: RUF001
    rf"[{SURNAMES}][\u4e00-\u9fff]{{0,2}}(?:先生|女士|小姐|经理|老师|医生|教授|总监|主任|律师|博士)"
)
ARABIC_NAME = re.compile(
    r"(?:السيد|السيدة|الدكتور|الدكتورة|المهندس|المهندسة|الأستاذ|الأستاذة|الآنسة|اسمه|اسمها|يدعى|تدعى)\s\S+|"
    r"(?<!\w)(?:محمد|أحمد|محمود|علي|حسن|حسين|خالد|عمر|يوسف|إبراهيم|مصطفى|عبد\s?\w+|سعيد|سامي|طارق|كريم|ياسر|فاطمة|"
    r"مريم|ليلى|سارة|نورة|عائشة|زينب|هدى|منى|سلمى)(?:\s\w+)?"
)
# German capitalises every noun: only two in a row, a title, or one that ends its clause count.
GERMAN_NAME = re.compile(
    r"(?:\b(?:Herrn?|Frau|Dr\.|Prof\.|Firma)\s(?:(?:Dr|Prof)\.\s)?[A-ZÄÖÜ][\w-]+)|\b[A-ZÄÖÜ][\w-]+\s[A-ZÄÖÜ][\w-]+|"
    r"(?:(?<=\bist )|(?<=heißt )|(?<=[Ff]rag )|(?<=ragen )|(?<=weifel )|(?<=\ban )|(?<=\b(?:mit|von|"
    r"bei) ))[A-ZÄÖÜ][\w-]+(?=[.,!?]|$)"
)
TITLED_NAME = re.compile(r"\b(?:Mr|Mrs|Ms|Dr|M|Mme|Mlle|Sr|Sra|Dra|Prof)\.?\s[A-ZÀ-Þ][\w'\u2019-]+")
# The first word of a sentence, if it is a verb.
FIRST_NAME = re.compile(
    r"([A-ZÀ-Þ][\w'\u2019-]+)\s(?:is|was|has|had|will|can|said|est|a|es|ha|dit|[a-zß-ÿ]{2,}[aest])\b"
)

CLAUSE = r"(?:^|[,;:!(–]\s*|\b(?:please|so|and|but|also|then|just|or|to|you)\s+)"  # noqa: RUF001
ENGLISH = (
    rf"\bnever\b|{CLAUSE}(?:do not|don['\u2019]?t)\b(?! (?:know|think|see|mind|worry|understand)\b)|"
    r"\b(?:must|may|shall|should|(?<!\bI )can|ought|need)(?: ?not|n['\u2019]t)\b|(?:\byou won|"
    r"(?<!\bI )\bcan)['\u2019]t\b|"
    r"\b(?:do not|don['\u2019]t|never|wouldn['\u2019]t|not) (?:want|like)\b|['\u2019]d rather|would rather|"
    r"\bunder no \w+|\bnot (?:be )?(?:allowed|permitted|acceptable|to)\b|\bis allowed\b|"
    r"\b(?:forbid\w*|prohibit\w*|banned|off[- ]limits|hands off|taboo|avoid\w*|refrain\w*|whatever you do|"
    r"at no (?:time|point)|"
    r"anything but|confidential)\b|\bstop \w+ing\b|\b(?:stay|steer|keep) (?:away|clear|out|off)\b|"
    r"\bkeep .{1,60} (?:out|away|secret|private|to yourself)\b|\bleave .{1,60} (?:alone|out|untouched|as)\b|"
    r"^(?:and |please |but )?no (?!problem|idea|thanks|worries|,)\w+|\b(?:nobody|no one)\b|\bwithout (?:asking|"
    r"my|telling|checking|permission)\b|"
    r"\balways\b|\bfrom (?:now|here) on\b|\b(?:every|each) (?:time|answer|reply|response)\b|\bwhenever\b|"
    r"\bgoing forward\b|"
    r"\bin (?:the )?future\b|\bhenceforth\b|\b(?:make|be) sure\b|(?<!I['\u2019]ll )(?<!to )\bensure\b|"
    r"\bkeep in mind\b|(?<!\bI )(?<!there )\bmust\b(?! have)|\bat all times\b|\bas a rule\b|"
    rf"{CLAUSE}(?:remember|note|only|stick|call (?:me|it))\b|\buse only\b|\bonly use\b|\bI (?:want|need|expect|"
    r"would like) you\b|"
    r"\bI['\u2019]?d? (?:would )?(?:prefer|insist)\b|\bI['\u2019]d like you\b|\b(?:answer|reply|respond|"
    r"write) (?:in|with|only)\b"
)
GERMAN = (
    r"\b(?:nie|niemals|keinesfalls)\b|(?:auf|in) keinen? Fall|unter keinen|\b(?:darf|dürfen|soll\w*|muss|müssen|"
    r"kann|will|möchte)\b.{0,80}"
    r"\b(?:nicht|kein\w*)\b|\bniemand\b|\bverboten|\buntersag|\btabu\b|\bvermeid|\bunterlass|\bverzicht|"
    r"\bFinger weg|\bhör\w* auf|"
    r"\blass\w* .{1,60} (?:in Ruhe|weg|so)\b|^(?:bitte )?kein\w*\b|\bbitte\b.{0,80}\bnicht\b|\bnicht mehr\b|"
    r"\bohne (?:Rück|mein|zu frag)|"
    r"^(?!(?:ich|er|sie|es|wir|das|die|der|dies\w*|hier|da|dort|aber|und|ein\w*|mein\w*|leider|warum|wieso|ist|"
    r"hat|war|was|wer|wo|"
    r"wie|sind|haben|noch|auch)\b)\w+\b.{0,80}\bnicht[.!]?$|\b(?:immer|stets|künftig|zukünftig|ausschließlich|"
    r"grundsätzlich|unbedingt)\b|"
    r"\bjede[srnm]? (?:Mal|Antwort)|\bab (?:jetzt|sofort|heute)|\bvon nun an|\bin Zukunft|\bdenk\w* (?:daran|"
    r"bitte)|\bmerk\w* dir|\bacht\w* darauf|"
    r"\bstell\w* sicher|\bsorg\w* dafür|\bvergiss nicht|\bnur noch|\bbitte nur|\bich (?:möchte|"
    r"will)\b.{0,20}\bdass\b|\bich bevorzuge|\bhalt\w* dich|"
    r"\bmuss\b|\bich will .{1,60} nicht"
)
FRENCH = (
    r"\bjamais\b|(?:^|[,;:]\s*|\b(?:et|mais|donc|de|à)\s+)n(?:e |['\u2019])\w+.{0,40}\b(?:pas|plus|rien|personne|"
    r"aucun\w*)\b|\b(?:de|à) ne pas\b|"
    r"\b(?:faut|doi\w+|peu[txv]\w*|veux|voudrais|souhaite|aimerais|préfère)\b.{0,60}\b(?:pas|plus|aucun\w*)\b|"
    r"\binterdi|\bdéfense d|\bprohib|\bévite|"
    r"\babst(?:ien|en)|\b(?:arrête|cesse)\w* d|\blaisse\w* .{1,60} (?:tranquille|de côté)|hors de question|"
    r"en aucun cas|sous aucun|\baucune? .{1,80}\b(?:doit|peut)|"
    r"^(?:pas|plus) (?:de|d['\u2019]|jamais)|\bpersonne n|\btouche pas|\bsans (?:mon|ma|me|demander)|"
    r"\b(?:toujours|désormais|dorénavant|uniquement|impérativement)\b|"
    r"à partir de (?:maintenant|aujourd)|\bchaque (?:fois|réponse)|à l['\u2019]avenir|\bpense[sz]? à|\bassure|"
    r"\bveille[rz]?\b|en sorte|\boublie\w* pas|\bretien|\bsouvien|"
    r"\brappelle|\bje (?:veux|voudrais|souhaite|aimerais|préfère) qu|\bil faut\b|\bdoi(?:t|vent|s)\b|^(?:utilise|"
    r"répond)\w*\b.{0,40}\bseulement"
)
SPANISH = (
    r"\b(?:nunca|jamás)\b|(?:^|[,;:¡¿]\s*|\b(?:y|pero|favor|de|que)\s*+,?\s*)no (?!sé|tengo|puedo|entiendo|hay|es|"
    r"está|estoy|recuerdo|creo|he|ha|soy|fue)(?:me |se |lo |la )?\w+|"
    r"\bno (?:quiero|se (?:puede|debe|permite)|debe\w*|puede\w*)\b|\bnadie (?:puede|debe)|\bprohib|\bevit[aeo]|"
    r"\babst(?:en|ien|én)|\bdej[ae]n? .{1,60} (?:en paz|fuera|como)|"
    r"\bdej[ae]n? de|\bbajo ning|\b(?:de|en) ning[uú]n|\bni se te|\bnada de|\bintocable|\bsin (?:mi|preguntar|"
    r"permiso)|\b(?:siempre|solamente|únicamente|exclusivamente)\b|"
    r"a partir de ahora|de ahora en adelante|\ben adelante|\bcada (?:vez|respuesta)|en el futuro|\brecuerd[ae]\b|"
    r"\basegúr|\basegur[ae]|\bolvides|en cuenta|\bten presente|"
    r"\bquiero que|\bprefiero\b|\bdeben?\b|\btiene que|\bhay que|^(?:usa|responde)\b.{0,40}\bs[oó]lo\b"
)
CHINESE = (
    "不要|(?<![分特区级性告个类识辨差鉴派])别(?![人的处墅名致])|勿|不得|不许|不准|不可(?!能|思)|(?<!我)不能|不应|不该|禁止|严禁|禁用|千万|绝不|绝对|永不|永远不|避免|停止|不希望|"
    "不想让|杜绝|"
    "始终|总是|一直|每次|每个回答|从现在|今后|以后都|一律|记住|记得|务必|必须|一定要|确保|我希望|我要你|请用|只能|只用|只要用"
)
ARABIC = (
    r"(?:^|\s)[وف]?لا (?:ت(?!زال|وجد)|يجوز|يسمح|ينبغي|يمكن (?:أن|ل)|أريد|نريد|أحب|أرغب|أحد)|(?:^|\s)(?:يمنع|تمنع|"
    r"ممنوع|محظور|يحظر|تحظر|تجنب|إياك|ابتعد|امتنع|احذر|حذار)|توقف عن|"
    r"(?:^|\s)(?:ألا|ألّا|عدم|مطلقا|أبدا)\b|بأي حال|دون (?:إذن|سؤال|موافق)|دائما|من الآن|فصاعدا|كل (?:مرة|إجابة)|"
    r"(?:^|\s)(?:تذكر|تأكد|احرص|يجب|ضع في|أريدك|لابد|عليك)|"
    r"أريد أن|أنني أفضل|فقط"
)
INSTRUCTION = re.compile("|".join((ENGLISH, GERMAN, FRENCH, SPANISH, CHINESE, ARABIC)), re.IGNORECASE)
REQUEST = re.compile(
    r"\b(?:(?:can|could|would|will) you|please|bitte|puedes?)\b|\b(?:peux|pourr\w+)[- ](?:tu|vous)\b|请", re.IGNORECASE
)


PATTERNS: tuple[tuple[FactKind, re.Pattern[str]], ...] = (("file", FILE), ("date", DATE), ("number", NUMBER))


def is_instruction(sentence: str) -> bool:
    """Return whether a person forbids something or sets a rule; a question counts if it is a request."""
    if sentence.rstrip().endswith(("?", "？", "؟")) and not REQUEST.search(sentence):  # noqa: RUF001
        return False
    return INSTRUCTION.search(OPTIONAL.sub("", sentence)) is not None


def facts_in(sentence: str) -> Iterator[tuple[FactKind, str]]:
    """Yield the facts in a sentence that are recognisable by their form, each with its kind."""
    for kind, pattern in PATTERNS:
        yield from ((kind, match[0].strip()) for match in pattern.finditer(sentence))
        sentence = pattern.sub("\u2026", sentence)
    yield from (("name", name) for name in _names(sentence))


def _names(sentence: str) -> Iterator[str]:
    if not sentence.isascii():
        for pattern in (CHINESE_NAME, ARABIC_NAME):
            yield from (match[0] for match in pattern.finditer(sentence))
    words = search_words(sentence)
    if language_of(words, min_common=1) == "german":
        yield from (match[0] for match in GERMAN_NAME.finditer(sentence))
    else:
        yield from NAME.findall(sentence)
        yield from (match[0] for match in TITLED_NAME.finditer(sentence))
    first = FIRST_NAME.match(sentence)
    if first and words and words[0] not in STOP_WORDS:
        yield first[1]
