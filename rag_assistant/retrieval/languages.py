"""The language of words, recognised by its most common words, which occur in nearly every sentence. Pure."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence

# Fewer common words prove nothing: "in" and "die" exist in several languages.
MIN_COMMON_WORDS = 2

# Unicode ranges of scripts; other scripts have no name here.
SCRIPT_STARTS = (
    *((0x0000, "latin"), (0x0370, "greek"), (0x0400, "cyrillic"), (0x0530, "armenian"), (0x0590, "")),
    *((0x0600, "arabic"), (0x0700, ""), (0x0750, "arabic"), (0x0780, ""), (0x08A0, "arabic")),
    *((0x0900, "devanagari"), (0x0980, ""), (0x0B80, "tamil"), (0x0C00, "")),
    *((0x1E00, "latin"), (0x1F00, "greek"), (0x2000, ""), (0x2C60, "latin"), (0x2C80, "")),
    *((0xA640, "cyrillic"), (0xA6A0, ""), (0xA720, "latin"), (0xA800, "")),
)
STARTS, NAMES = zip(*SCRIPT_STARTS, strict=True)

# By script. The first one is assumed if nothing indicates another.
COMMON_WORDS = {
    "latin": {
        "english": "the of and to in is was that for it with as his on be at by are this from which or an were who "
        "what when where how why has had have does did not can am than into been their its about you your",
        "german": "der die das und in den von zu mit sich des auf für ist im dem nicht ein eine als auch es an werden "
        "aus er hat dass wird bei einer um am sind wie einem über wurde was wer wann wo welche sie oder zur zum",
        "french": "le la les de des et un une du en est que qui dans pour pas sur au aux par plus avec ce cette il "
        "elle sont ou était quel quelle comment où se ne",
        "spanish": "el la los las de que en un una por con para es del se no al lo como más su fue son qué cuál "
        "quién cuándo dónde pero sus este esta ha",
        "portuguese": "os as de que em um uma do da dos das no na por com para se não ao mais foi são como "
        "seu sua ou qual quem quando onde pelo pela",
        "italian": "il lo la gli le di che in un una per con del della dei delle si non da al alla nel nella "
        "sono come più ha chi quale quando dove fu",
        "dutch": "de het een van en in is dat op te zijn met voor niet aan er om ook als door bij naar werd uit wie "
        "wat hoe waar wanneer welke deze ze hij",
        "swedish": "och att det som en på är av för med till den har de inte om ett var från vad vem när hur vilken "
        "eller kan ska så men blev",
        "danish": "og at det som en på er af for med til den har de ikke om et var fra hvad hvem hvornår hvor "
        "hvordan hvilken eller kan skal så men blev efter",
        "norwegian": "og at det som en på er av for med til den har de ikke om et var fra hva hvem når hvor hvordan "
        "hvilken eller kan skal så men ble etter",
        "finnish": "ja on ei se että oli mutta ovat tai kun hän joka mitä kuka milloin missä miten mikä myös kuin "
        "sen ole hänen jotka olivat voi sekä",
        "estonian": "ja on ei see et oli aga või kui ta mis kes millal kus kuidas ka oma selle nii mida pole olid "
        "välja pärast",
        "hungarian": "az és hogy nem is egy ez volt meg de van mint csak mi ki mikor hol hogyan melyik vagy el "
        "már még azt után szerint",
        "romanian": "și si în de la cu pe care nu este din un ce mai pentru sunt au fost sau cine când unde cum "
        "prin al ale lui după",
        "polish": "na się do nie to jest że jak po co za od przez dla był była ale czy kto kiedy gdzie który "
        "która jego oraz są",
        "czech": "na se je že do to jako by pro za od po byl byla jsou nebo kdo kdy kde který která co jeho není při",
        "slovak": "na sa je že do to ako by pre za od po bol bola sú alebo kto kedy kde ktorý ktorá čo jeho nie pri",
        "croatian": "na je se da za od su koji koja što kao ne iz ili ali bio bila tko kada gdje kako do po nije te",
        "turkish": "ve bir bu için ile de da olarak olan ne kim nasıl nerede zaman daha çok en gibi var değil kadar "
        "sonra hangi mi ya",
        "indonesian": "yang dan di dari untuk dengan pada ini itu adalah dalam tidak akan oleh sebagai atau juga ada "
        "apa siapa kapan bagaimana mana ke karena",
        "catalan": "el la els les de que en un una per amb és del no es al com més va són què quin qui quan on "
        "però seu aquest aquesta",
        "lithuanian": "ir yra kad iš su kaip tai ar bet buvo nuo už kas kur kada jo jos apie po dėl taip ne",
        "vietnamese": "của và là các có được trong cho một những với không này người đã khi từ để như gì ai nào",
    },
    "cyrillic": {
        "russian": "не на что по как это он из для от его за был была или так но кто когда где какой же во были",
        "ukrainian": "не на що та як це він із для від його до за був була або так але хто коли де який про були",
        "bulgarian": "не на че по как това той от за са се или но кой кога къде какво до при като беше бил",
        "serbian": "не на да са по како је се су за од или али ко када где који што из до био била",
    },
    "greek": {"greek": "και το η ο του της των την τον να με για από που στο στην είναι σε δεν ποιος πότε πού"},
    "armenian": {"armenian": "և է են որ ու մեջ իր հետ համար այդ այս ինչ ով երբ որտեղ"},
    "arabic": {
        "arabic": "من في على إلى عن أن التي الذي ما هو هي كان كانت هذا هذه مع لم لا متى أين كيف هل أو بين",
        "persian": "از در به که این است را با و برای آن یک می شد چه کجا چگونه بود شود خود تا یا",
        "urdu": "کے کی میں ہے اور سے کا کو نے پر یہ ہیں تھا کیا ایک جو بھی نہیں تک گیا",
    },
    "devanagari": {
        "hindi": "के का में है की और से को ने पर यह हैं था क्या एक जो भी नहीं तक गया किस कौन कब कहाँ थे थी",
        "marathi": "आहे आणि या च्या होते ते हे ही तो मध्ये होता काय कोण कधी कुठे नाही व एक आहेत",
        "nepali": "छ को र मा लाई ले हो छन् यो थियो पनि गर्न भएको के कहिले कहाँ हुन्छ एक गरेको",
    },
    "tamil": {"tamil": "ஒரு இந்த என்று மற்றும் அந்த என்ன யார் எப்போது எங்கே உள்ள இது அது"},
}
# Words that ask how much, and what is measured so: "how high" says nothing about the subject. Both are left out
# if the second follows the first; the last ones ask by themselves.
ASKING_HOW = frozenset("how wie hoe hur hvor kuinka kui milyen jak ako ne cât как як".split())
MEASURES = frozenset(
    """
    much many long high often old large big far heavy fast tall deep wide hot cold warm expensive late early soon strong
    viel viele vielen lange hoch oft groß alt weit schwer schnell tief breit heiß kalt warm teuer spät früh stark
    veel lang hoog vaak groot oud ver zwaar mycket många länge högt hög ofta stor stort gammal långt
    mange meget længe høj højt stor gammel lenge høy høyt mye ofte pitkä pitkään korkea kuuma usein vanha paljon monta
    palju kaua kõrge magas hosszú nagy régi długo wysoki wysoka wysokie często stary dlouho vysoký vysoká často
    starý dlho kadar zaman mult mulți multe înalt часто долго высоко высокий высокая много часто довго високий висока
    """.split()
)
ASKING_ALONE = frozenset(
    """
    combien quanto quanta quanti quante cuánto cuánta cuántos cuántas cuanto quantos quantas quant quants quantes
    hoeveel hány mennyi ile kolik koľko koliko kiek kaç berapa câți câte сколько скільки колко колико πόσο πόση πόσα
    πόσοι πόσες քանի որքան كم چند چقدر کتنا کتنے کتنی कितना कितनी कितने किती कति எத்தனை எவ்வளவு
    """.split()
)
USUAL_LANGUAGE = {script: next(iter(languages)) for script, languages in COMMON_WORDS.items()}
SCRIPT_OF_LANGUAGE = {language: script for script, languages in COMMON_WORDS.items() for language in languages}

COMMON_WORDS_OF = {one: words.split() for some in COMMON_WORDS.values() for one, words in some.items()}
_LANGUAGES_OF: dict[str, list[str]] = defaultdict(list)
for _languages in COMMON_WORDS.values():
    for _language, _words in _languages.items():
        for _word in _words.split():
            _LANGUAGES_OF[_word].append(_language)


def language_of(
    words: Iterable[str], among: Collection[str] = SCRIPT_OF_LANGUAGE, min_common: int = MIN_COMMON_WORDS
) -> str:
    """Return the language of lower-case words, among some languages, ``""`` if unclear.

    A word counts less the more of the languages have it, and only once.
    """
    scores: dict[str, float] = defaultdict(float)
    common: dict[str, int] = defaultdict(int)
    for word in _LANGUAGES_OF.keys() & words:
        languages = _LANGUAGES_OF[word]
        for language in languages:
            scores[language] += 1 / len(languages)
            common[language] += 1
    ranked = sorted(((score, one) for one, score in scores.items() if one in among), reverse=True)
    (best, language), (second, _) = [*ranked, (0.0, ""), (0.0, "")][:2]
    return language if best > second and common[language] >= min_common else ""


def without_asking(words: Sequence[str]) -> list[str]:
    """Return the words of a question without those that only ask, in any language, and its common words."""
    common = set(COMMON_WORDS_OF.get(language_of(words), ()))
    telling = [
        word
        for before, word, after in zip(["", *words], words, [*words[1:], ""], strict=False)
        if not (word in ASKING_HOW and after in MEASURES) and not (word in MEASURES and before in ASKING_HOW)
    ]
    return [word for word in telling if word not in ASKING_ALONE and word not in common]


def script_of(word: str) -> str:
    """Return the script of a word's first letter, ``""`` for one without a language in the table."""
    return "latin" if word.isascii() else NAMES[bisect_right(STARTS, ord(word[0])) - 1]
