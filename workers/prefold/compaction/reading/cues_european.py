"""Wording that carries a cue in German, French, Spanish, Portuguese and Russian: the plainest only.

Rules as in ``cues_english``; words that English has too are left out, or stand with their neighbours.
"""

import re

from prefold.compaction.reading.cue import Cue
from prefold.compaction.reading.cues_english import Rule


def _rule(cue: Cue, words: str, pattern: str) -> Rule:
    return cue, frozenset(words.split()), re.compile(pattern, re.VERBOSE)


EUROPEAN: tuple[Rule, ...] = (
    _rule(
        Cue.HEALTH | Cue.CONSTRAINT,
        """allergisch allergie allergien unverträglichkeit vertrage verträgt vertragen laktoseintolerant glutenfrei veganer veganerin vegetarier vegetarierin diabetiker diabetikerin schwanger
        zöliakie allergique allergiques intolérant intolérante végétarien végétarienne végane enceinte diabétique coeliaque asthmatique alérgico alérgica alergia intolerante vegetariano vegetariana
        vegano vegana embarazada diabético diabética celíaco celíaca asmático asmática grávida аллергия аллергии аллергию аллергией непереносимость непереносимости веган вегетарианец вегетарианка
        беременна диабет диабета астма""",
        r"""
        \b(?:allergisch|allergien?|unverträglichkeit|laktoseintolerant|glutenfrei|veganer(?:in)?|vegetarier(?:in)?|diabetiker(?:in)?|schwanger|zöliakie|allergiques?|intolérante?|végétarien(?:ne)?|végane|enceinte
          |diabétique|coeliaque|asthmatique|alérgic[oa]|alergia|intolerante|vegetarian[oa]|vegan[oa]|embarazada|diabétic[oa]|celíac[oa]|asmátic[oa]|grávida|беременна|веган|вегетариан\w+|диабета?|астма)\b
      | \bvertr(?:age|ägt|agen)\s(?:\w+\s)?(?:kein|nicht) | \bаллерги[яиюе]й?\b | \bнепереносимост[ьи]\b
        """,
    ),
    _rule(
        Cue.STANDING | Cue.CONSTRAINT,
        """niemals nie keinesfalls immer nicht sofort jetzt keinen jamais toujours désormais dorénavant maintenant aucun pas nunca jamás siempre ahora adelante no sempre agora diante não
        никогда всегда отныне впредь момента случае не""",
        r"""
        \b(?:niemals|keinesfalls|auf\skeinen\sfall|ab\s(?:sofort|jetzt)) | \bbitte\s(?:\w+\s){0,4}?(?:nicht|nie|immer|nur)\b | ^(?:rufen|ruf|schreiben|schreib|antworten|antworte|verwenden|verwende|nennen|nenne)\s(?:\w+\s){0,5}?(?:nie|nicht|immer|nur)\b
      | \b(?:ne|n')\s?(?:\w+\s){1,4}?jamais\b | ^(?:s'il\svous\splaît,?\s)?ne\s(?:m'|me\s|nous\s)?\w+(?:ez|s)\s(?:pas|jamais|plus)\b | \bmerci\sde\sne\b | ^(?:\w+ez|\w+e)\stoujours\b | \b(?:désormais|dorénavant|à\spartir\sde\smaintenant|en\saucun\scas)\b
      | \b(?:nunca|jamás|jamais)\s(?:me\s|nos\s|le\s|se\s)?(?!he\b|había\b|fui\b|estuve\b|tive\b|estive\b|vi\b)\w+ | ^(?:por\sfavor,?\s)?(?:no|não)\s(?:me|nos)\s\w+ | ^(?:por\sfavor,?\s)?(?:siempre|sempre)\s\w+
      | \b(?:a\spartir\sde\s(?:ahora|agora)|de\s(?:ahora\sen\sadelante|agora\sem\sdiante)|bajo\sningún\sconcepto)\b
      | \bникогда\sне\s | ^(?:пожалуйста,?\s)?всегда\s | \b(?:отныне|впредь|с\sэтого\sмомента|ни\sв\sкоем\sслучае)\b | (?:^|,\s|пожалуйста,?\s)не\s\w+(?:йте|ите|ай|уй|и)\b
        """,
    ),
    _rule(
        Cue.LIMIT | Cue.CONSTRAINT,
        """budget höchstens maximal mindestens spätestens frist muss müssen darf dürfen bis maximum plus moins tard limite doit dois faut interdit presupuesto máximo menos tardar debe hay puede puedo
        más orçamento prazo deve pode posso бюджет бюджета более больше максимум минимум позднее срок должен должна должны нельзя обязательно могу до""",
        r"""
        \b(?:mein|unser|mon|notre)\sbudget\b | \b(?:höchstens|spätestens|nicht\smehr\sals|frist)\b | \b(?:maximal|mindestens)\s\d | \b(?:darf|dürfen|kann|können)\s(?:\w+\s){0,3}?(?:nicht|nur|kein\w*)\b | \bm(?:uss|üssen)\s(?:\w+\s){0,4}?bis\b
      | \b(?:au\s(?:maximum|plus\stard)|pas\splus\sde|date\slimite|interdit\w*)\b | \bau\s(?:plus|moins)\s\d | \b(?:doit|dois|doivent|faut)\s(?:\w+\s){0,4}?avant\b
      | \b(?:presupuesto|como\smáximo|a\smás\stardar|fecha\slímite|no\smás\sde)\b | \b(?:debe|tiene\sque|hay\sque)\s(?:\w+\s){0,4}?antes\b | \bno\spued[eo]n?\s\w+ | \b(?:al|pelo)\smenos\s\d
      | \b(?:orçamento|no\smáximo|prazo|não\smais\sde)\b | \b(?:deve|tem\sque)\s(?:\w+\s){0,4}?(?:até|antes)\b | \bnão\s(?:pode|posso|podemos)\s\w+
      | \bбюджета?\b | \bне\s(?:более|больше|позднее|могу|может)\b | \b(?:максимум|минимум)\s\d | \bдолж(?:ен|на|но|ны)\s(?:\w+\s){0,4}?до\b | \bнельзя\b | \bкрайний\sсрок\b
        """,
    ),
    _rule(
        Cue.CORRECTION,
        """meinte nein falsch sondern statt stattdessen korrektur verschrieben geirrt vertan doch voulais trompé trompée plutôt lieu mais erreur finalement quise quería equivoqué corrección vez lugar sino dicho
        quis queria enganei correção sim errei верно виду ошибся ошиблась вместо точнее опечатка нет""",
        r"""
        \bich\smeinte\b | \bnein,?\s(?:ich|das|es|nicht|doch|der|die)\b | \b(?:das|die\s\w+)\s(?:ist|war)\sfalsch\b | \bnicht\s[^,.;]{1,40},?\ssondern\s | \b(?:statt(?:dessen)?|korrektur|verschrieben|geirrt|vertan)\b
      | \bje\svoulais\sdire\b | \bme\ssuis\strompée?\b | \b(?:au\slieu\sde|plutôt\sque)\b | \b(?:n'est\s)?pas\s(?:le\s|la\s|à\s)?[^,.;]{1,30},?\smais\s(?:le|la|à|plutôt|bien)\b | ^(?:non|pardon|erreur|désolée?)[,.]\s(?:c'est|le|la|je|il|plutôt|\d)
      | \bquise\sdecir\b | \bquería\sdecir\b | \bme\s(?:equivoqué|he\sequivocado)\b | \b(?:en\s(?:vez|lugar)\sde|corrección|mejor\sdicho)\b | \bno\s[^,.;]{1,30},?\ssino\b | ^(?:perdón|no)[,.]\s(?:es|el|la|era|son|mi|quise|\d)
      | \bquis\sdizer\b | \bqueria\sdizer\b | \b(?:me\senganei|enganei-me|errei|correção|em\svez\sde)\b | \bnão\s[^,.;]{1,30},?\smas\ssim\b | ^(?:desculpe?|não)[,.]\s(?:é|o|a|era|são|meu|minha|\d)
      | \bимел[аи]?\sв\sвиду\b | \bошиб(?:ся|лась)\b | \b(?:вместо|точнее|опечатка)\b | \bне\s[^,.;]{1,30},\sа\s | ^нет,\s
        """,
    ),
    _rule(
        Cue.CONTACT | Cue.IDENTITY,
        """meine mein heiße wohne lebe komme erreichen bestellung bestellnummer kundennummer mon ma m'appelle j'habite habite vis commande numéro mi llamo vivo soy trabajo pedido meu minha chamo moro sou
        encomenda número мой моя моё мое зовут живу заказ заказа номер из""",
        r"""
        \bmeine?\s(?:\w+\s)?(?:e-?mail\S*|mail\S*|adresse|telefonnummer|handynummer|nummer|bestell\w+|kundennummer|konto\w*|name)\b | \bich\s(?:heiße|wohne|lebe|komme\saus|bin\saus)\b | \b(?:erreichen|kontaktieren)\ssie\smich\b | \b(?:bestell|kunden|auftrags)nummer\b
      | \b(?:mon|ma)\s(?:\w+\s)?(?:e-?mail|mail|adresse|numéro|téléphone|compte|nom|commande)\b | \bje\s(?:m'appelle|vis\sà|suis\sde)\b | \bj'habite\b | \bnuméro\sde\s(?:commande|client|dossier|téléphone)\b
      | \bmi\s(?:\w+\s)?(?:correo|e-?mail|dirección|teléfono|móvil|número|pedido|cuenta|nombre)\b | \bme\sllamo\b | \b(?:vivo|trabajo)\sen\b | \bsoy\sde\b | \bnúmero\sd[eo]\s(?:pedido|cliente)\b
      | \b(?:meu|minha)\s(?:\w+\s)?(?:e-?mail|endereço|telefone|celular|número|pedido|nome|conta|encomenda)\b | \bme\schamo\b | \b(?:moro|trabalho)\sem\b | \bsou\sde\b
      | \bмо[йяеё]\s(?:\w+\s)?(?:e-?mail|почта|адрес|телефон|номер|заказ|имя)\b | \bменя\sзовут\b | \bя\s(?:живу|из)\b | \bномер\sзаказа\b
        """,
    ),
    _rule(
        Cue.FIRST_PERSON,
        "ich mein meine meinen mich mir wir unser unsere je j'ai mon ma mes nous notre yo mi mis nosotros nuestro nuestra eu meu minha nós nosso nossa я мой моя мое моё мне меня мы наш наша",
        r"",
    ),
)
