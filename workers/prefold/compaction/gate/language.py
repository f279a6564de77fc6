"""Whether a summary speaks the conversation's language, told by scripts and by the commonest little words.

Unsure counts as yes: code, tables, names and short texts have no language.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable

_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_LATIN = "latin"
_SCRIPTS = (
    ("kana", "\u3040", "\u30ff"), ("han", "\u3400", "\u9fff"), ("hangul", "\uac00", "\ud7af"), ("hangul", "\u1100", "\u11ff"),
    ("cyrillic", "\u0400", "\u052f"), ("greek", "\u0370", "\u03ff"), ("arabic", "\u0600", "\u08ff"), ("hebrew", "\u0590", "\u05ff"),
    ("devanagari", "\u0900", "\u097f"), ("bengali", "\u0980", "\u09ff"), ("tamil", "\u0b80", "\u0bff"), ("telugu", "\u0c00", "\u0c7f"),
    ("thai", "\u0e00", "\u0e7f"), ("georgian", "\u10a0", "\u10ff"), ("armenian", "\u0530", "\u058f"), ("ethiopic", "\u1200", "\u137f"),
)  # fmt: skip
_PATTERNS = {
    _LATIN: re.compile("[A-Za-z\u00aa-\u024f\u1e00-\u1eff]+"),
    **{
        name: re.compile("[" + "".join(f"{first}-{last}" for one, first, last in _SCRIPTS if one == name) + "]+")
        for name, _, _ in _SCRIPTS
    },
}
_WIDE = frozenset({"han", "kana", "hangul"})
_WORDS = {
    "English": "the of and to in is that for it was on are with as his they be at have this from or had by but not what all were we when your can said there use an each which she do how their if will up about out many then them these so some her would make like him into has look more go see no way could my than been who now did get made over new after also our only any may such",
    "German": "der die das und ist nicht ein eine den dem des mit auf für von zu im sich auch es ich sie wir ihr wird wurde werden haben hat sind war als bei nach aus wie dass oder aber nur noch über einen einer eines am um bis durch vor zum zur kann soll mehr wenn ihm ihre seine kein keine",
    "French": "le la les des du et est un une en que qui dans pour pas sur au aux il elle nous vous ils ce cette ces son sa ses par avec plus ne se ont été être avait sont mais ou où comme leur tout fait aussi deux même très sans je tu mon votre notre",
    "Spanish": "el la los las y es un una que en por con para no se su lo al del como más pero sus le ya o este sí porque esta entre cuando muy sin sobre también me hasta hay donde quien desde todo nos durante fue ha son era han ser está él ella usuario",
    "Portuguese": "o a os as e é um uma que em por com para não se do da dos das no na nos nas ao à mais como mas foi ele ela seu sua ou ser quando muito há já está eu também só pelo pela até isso entre era depois sem mesmo aos ter seus são você usuário",
    "Italian": "il lo la gli le e è un una uno che in per con non si del della dei delle di da al alla ai nel nella sono ma come più anche ha questo questa suo sua dal dalla o se ed essere stato era io lui lei noi hanno cui tra fra quando molto utente",
    "Dutch": "de het een en van is niet op te dat die in voor met zijn er aan om ook als maar bij nog uit dan naar heeft had ze hij we wordt werd kan door over deze dit geen haar hun wat meer worden hebben was gebruiker",
    "Swedish": "och att det som en på är av för med den till inte om ett har de jag var men han hon sig så från vi kan när eller ska vid efter också hade blev man detta",
    "Danish": "og at det som en på er af for med den til ikke om et har de jeg var men han hun sig så fra vi kan når eller skal ved efter også havde blev man dette",
    "Polish": "i w na nie się z do jest to że o jak po ale za od przez dla tak był być co jego ich oraz czy tylko może już ma są była było które który która przed bez",
    "Czech": "a v na se je že to s z do o k i jako ale za po pro jsou byl od by jeho nebo ve aby už být který která které jen také při však",
    "Turkish": "bir ve bu için ile de da ne çok ben sen o olarak daha gibi kadar sonra olan var ama değil mi en her şey onun göre kullanıcı ya veya ise",
    "Indonesian": "yang dan di ke dari untuk dengan ini itu tidak pada adalah akan oleh sebagai dalam telah juga saya kami mereka atau karena bisa ada sudah lebih pengguna",
    "Vietnamese": "và của là có được cho không trong một các với đã người này những để khi từ đến như về cũng tôi bạn ở ra vào",
    "Romanian": "și în de la cu pe un o nu este că din care pentru a fi sunt mai au fost sau dar ca se lui ce după prin",
    "Hungarian": "a az és hogy nem is egy ez de meg van volt csak mint már ki el ha kell azt még vagy lesz",
    "Finnish": "ja on ei se että oli hän mutta ovat kun niin myös tai joka sen mukaan jos kuin vain ole mitä ne",
    "Russian": "и в не на что это с по как из у я мы вы он она за к от о же но для так все бы его был было быть была уже или если когда их до также",
    "Ukrainian": "і в не на що це з по як у я ми ви він вона за до від та але для так все його був було або якщо коли їх також є",
}
_LANGUAGES = {name: frozenset(words.split()) for name, words in _WORDS.items()}
_LEAST_LETTERS = 40
_LEAST_WORDS = 7
_MOST_TIMES = 3
_OWN_SCRIPT = 0.25
_FOREIGN = 2.0
_SHARED = 0.34


def scripts_of(text: str) -> Counter[str]:
    """Letters of each script; a wide letter counts as three, for it says so much more."""
    found: Counter[str] = Counter()
    for name, pattern in _PATTERNS.items():
        if letters := sum(map(len, pattern.findall(text))):
            found[name] = letters * (3 if name in _WIDE else 1)
    return found


def words_of(text: str) -> Counter[str]:
    """How strongly the little words of each language occur: a word counts at most three times, a letter once."""
    found: Counter[str] = Counter()
    for word, times in Counter(_WORD.findall(unicodedata.normalize("NFC", text).lower())).items():
        for name, words in _LANGUAGES.items():
            if word in words:
                found[name] += min(times, _MOST_TIMES if len(word) > 1 else 1)
    return found


def speaks_like(text: str, source: Iterable[str]) -> bool:
    """Whether ``text`` is in a language that ``source`` uses as well; unsure counts as yes."""
    said = "\n".join(source)
    return _same_script(scripts_of(text), scripts_of(said)) and _same_words(words_of(text), words_of(said))


def says_something(text: str) -> bool:
    """Whether ``text`` has words of a language that we know, is in a script of its own, or too short to tell."""
    scripts = scripts_of(text)
    is_latin = scripts[_LATIN] > 0.8 * scripts.total() and scripts[_LATIN] >= 2 * _LEAST_LETTERS
    return not is_latin or max(words_of(text).values(), default=0) >= 3


def language_name(text: str) -> str:
    """``German``; empty where the little words do not tell."""
    found = words_of(text).most_common(2)
    if not found or found[0][1] < 2 * _LEAST_WORDS or (len(found) > 1 and found[1][1] > 0.8 * found[0][1]):
        return ""
    return found[0][0]


def _same_script(mine: Counter[str], theirs: Counter[str]) -> bool:
    letters, known = mine.total(), theirs.total()
    if letters < _LEAST_LETTERS or not known:
        return True
    if mine["kana"] > 0.2 * letters and theirs["kana"] < 0.02 * known:
        return False
    if theirs["kana"] > 0.2 * known and mine["kana"] < 0.05 * letters:
        return mine[_LATIN] > 0.8 * letters and theirs[_LATIN] > 0.5 * known
    shared = sum(count for name, count in mine.items() if theirs[name] >= _OWN_SCRIPT * known * 0.5)
    return shared >= _OWN_SCRIPT * 2 * letters


def _same_words(mine: Counter[str], theirs: Counter[str]) -> bool:
    if not mine or not theirs:
        return True
    (name, count), own = mine.most_common(1)[0], theirs.most_common(1)[0][0]
    if name == own or count < _LEAST_WORDS or count < _FOREIGN * mine[own]:
        return True
    return theirs[name] >= _SHARED * theirs[own] and count < _FOREIGN * 2 * mine[own]
