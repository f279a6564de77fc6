"""How people say in English what they do, whom they belong to and how their health is.

Patterns begin where a clause begins; see ``rule`` for their short forms.
"""

from prefold.memory.extracting.rule import Rule, english
from prefold.memory.extracting.shapes import (
    allergens,
    allergy,
    amount,
    counted,
    intention,
    organisation,
    person,
    phrase,
    place,
    role,
    things,
)
from prefold.memory.extracting.shapes_measured import medicine
from prefold.memory.extracting.vocabulary import CONDITIONS, KIN, NAMED_AFTER, NO_FOOD, OCCUPATIONS

__all__ = ["LIFE"]

LIFE: tuple[Rule, ...] = (
    english(
        "works_at",
        r"i~ work (?:at|for)",
        organisation,
    ),
    english(
        "works_at",
        r"(?:I'M|i've been)~ (?:working|employed) (?:at|for|by)",
        organisation,
    ),
    english(
        "works_at",
        r"i(?:'ve)?~ (?:started|got a (?:new )?job|got hired|joined)(?: working| a new job| a job)?(?: last \w+)? (?:at|for)",
        organisation,
    ),
    english(
        "works_at",
        r"my (?:employer|company|new employer)(?: is|'s)(?: called)?",
        organisation,
    ),
    english(
        "occupation",
        r"(?:i~ work|I'M~ (?:working|employed)|i've been working|i make (?:a|my) living) as(?: an?| the)?",
        role,
    ),
    english("teaches", r"i~ teach(?! (?:you|him|her|them|my|me|it|this|that|myself|people|at|in|for|how)\b)", role),
    english(
        "habit",
        r"i~ (?=work (?:night shifts?|nights|part[\s-]time|full[\s-]time|from home|remotely|weekends|shifts)\b)",
        phrase,
    ),
    english("occupation", r"i~ work (?:at|for|in) [\w .&'/-]{2,40}? as(?: an?| the)?", role),
    english("occupation", r"I'M~ (?:working|employed) (?:at|for|in|by) [\w .&'/-]{2,40}? as(?: an?| the)?", role),
    english(
        "occupation",
        rf"my (?:job|profession|occupation|job title|current role|day job)(?: title)?(?: is|'s)(?: now)?(?: an?| being an?)?(?= {OCCUPATIONS})",
        role,
    ),
    english(
        "occupation",
        rf"I'M~(?: (?-i:[A-Z]\w+(?: [A-Z]\w+)?,))? (?:an?|the)(?: \d{{2}}[\s-]year[\s-]old)?(?= {OCCUPATIONS})",
        role,
    ),
    english("occupation", r"i(?:'ve)?~(?: got| been| was)+ promoted to", role),
    english(
        "works_at",
        rf"(?:I'M~ (?:an?|the)|i~ work as an?) {OCCUPATIONS} (?:at|for|with)",
        place,
    ),
    english(
        "volunteers",
        r"(?:i~ volunteer|I'M~ volunteering)(?= (?:at|as|for|with)\b)",
        intention,
    ),
    english(
        "learning",
        r"(?:I'M|i've been)~ learning(?: how)?(?: to)?(?! (?:a lot|a ton|so much|about|more|from|as|that|how|something|new|the ropes|lots)\b)",
        phrase,
        0.75,
    ),
    english(
        "income",
        r"(?:I'M~ (?:earning|making)|i~ (?:earn|make))(?= (?:about |around |roughly )?[$€£¥]?\d[\d,.]*k?(?: \w+)? (?:annually|yearly|monthly|(?:a|per) (?:year|month|hour)))",
        amount,
    ),
    english(
        "works_in",
        r"i~ work in(?= (?:it|tech|finance|marketing|sales|healthcare|health care|education|hr|human resources|retail|construction|law|logistics|consulting|real estate|publishing|advertising|hospitality|insurance|banking|software|design|customer|public|media|manufacturing|engineering|agriculture|social)\b)",
        phrase,
    ),
    english(
        "runs",
        r"i~ (?:run|own|founded|co-?founded|started)(?= (?:my own |a |an |the )(?:[\w'-]+ ){0,3}?(?:business|company|shop|store|restaurant|cafe|bakery|studio|agency|startup|start-up|farm|salon|gym|gallery|blog|podcast|channel|bookstore|bookshop|nonprofit|charity|school|firm|practice|brand|clothing store|dance studio)\b)",
        phrase,
    ),
    english(
        "studies",
        r"i~ (?:study|major in)(?! (?:for|hard|at|with|every|a lot|together|in|abroad|and|until)\b)",
        phrase,
    ),
    english(
        "studies",
        r"I'M~ (?:studying|majoring in)(?! (?:for|hard|at|with|every|a lot|together|in|abroad|and|until|right)\b)",
        phrase,
    ),
    english(
        "studies_at",
        r"(?:i~ (?:study|go to school|go to college)|I'M~ studying|I'M~ an? (?:\w+ ){0,3}student) at",
        organisation,
    ),
    english(
        "studies",
        r"my major(?: is|'s)",
        phrase,
    ),
    english(
        "occupation",
        r"I'M~(?= (?:retired|unemployed|self-employed|freelancing|a freelancer)(?:[,.!]|$| and\b| now\b))",
        phrase,
    ),
    english("occupation", r"i've~ worked as(?: an?)?(?= .*\b(?:for|since)\b)", role),
    english(
        "studies_at",
        r"i~ (?:go to|attend)(?= (?-i:[A-Z])[\w' -]*(?-i:School|University|College|Academy|Institute|High)\b)",
        organisation,
    ),
    english("occupation", rf"i've~ been an?(?= {OCCUPATIONS})", role),
    english(
        "studied_at",
        r"i(?:~ graduated from|(?:'ve| have)~ graduated from)",
        organisation,
    ),
    english(
        "degree",
        r"(?:i~ have|i've~ got|i~ (?:got|earned|hold)) (?:an?|my) (?:[\w']+ )?(?:degree|master's|bachelor's|phd|doctorate|diploma|certificate)(?: degree)? in",
        phrase,
    ),
    english(
        "works_at",
        r"i've~ worked (?:at|for)(?= .*\b(?:for|since)\b)",
        place,
    ),
    english(
        "has_family",
        r"I'M~ (?:an?|the)(?= (?:\w+ )?(?:mom|mum|dad|mother|father|parent|grandmother|grandfather) (?:of|to) )",
        phrase,
    ),
    english(
        "marital_status",
        r"(?:i've|we've)~ been(?= (?:happily )?(?:married|divorced|engaged|single|widowed) (?:for|since)\b)",
        role,
    ),
    english("diet", r"i've~ been(?: an?)?(?= (?:vegan|vegetarian|pescatarian)\b)", role),
    english(
        "has_pet",
        r"(?:i|we)(?:'ve| have)?~ (?:got|adopted|rescued)(?= (?:an?|two|three|another) (?:[\w-]+ ){0,3}?(?:dogs?|cats?|pupp(?:y|ies)|pups?|kittens?|rabbits?|parrots?|turtles?|horses?|hamsters?)\b)",
        phrase,
    ),
    english(
        "marital_status",
        r"I'M~(?= (?:happily )?(?:married|divorced|single|widowed|engaged|separated)(?:[,.!]|$| and\b| now\b| with\b))",
        phrase,
    ),
    english(
        "spouse",
        r"(?:I'M~|i got|i'm newly) married to",
        person,
    ),
    english(
        "{kind}",
        rf"my (?P<kind>{KIN})(?:'s)? name(?: is|'s)(?: now)?",
        person,
    ),
    english(
        "{kind}",
        rf"my (?P<kind>{KIN}) is (?:called|named)",
        person,
    ),
    english(
        "{kind}",
        rf"i~ have an? (?:[\w-]+ )?(?P<kind>{KIN}) (?:called|named)",
        person,
    ),
    english(
        "has_family",
        rf"(?:i|we)(?:~ have(?: got)?|'ve~ got)(?= (?:an?|one|two|three|four|five|six|seven|\d)(?: \w+)? (?:kids?|child(?:ren)?|sons?|daughters?|brothers?|sisters?|siblings?|grandchildren|grandkids|grandsons?|granddaughters?|stepsons?|stepdaughters?)\b(?!{NAMED_AFTER}))",
        counted,
    ),
    english(
        "has_pet",
        rf"(?:i|we)(?:~ (?:have(?: got)?|own)|'ve~ got)(?= (?:an?|one|two|three|four|five|\d)(?: [\w-]+){{0,2}} (?:dogs?|retrievers?|labradors?|poodles?|beagles?|terriers?|bulldogs?|husk(?:y|ies)|corgis?|dachshunds?|chihuahuas?|cats?|pupp(?:y|ies)|kittens?|rabbits?|hamsters?|parrots?|turtles?|horses?|guinea pigs?|goldfish|snakes?|pets?)\b(?!{NAMED_AFTER}))",
        things,
    ),
    english("takes_medication", r"(?:i~ take|I'M~ (?:on|taking)|i've been taking)", medicine),
    english(
        "condition",
        r"i~ have(?: got)?(?= an? (?:bad|weak|injured|broken|artificial|prosthetic|chronic) (?:knee|back|hip|shoulder|ankle|wrist|neck|heart|leg|arm|foot)\b)",
        phrase,
    ),
    english("{kind}", r"my (?P<kind>doctor|gp|dentist|therapist|physician) is(?= dr\.? )", person),
    english(
        "allergic_to",
        r"(?:I'M~ (?:severely |deathly |highly |very |mildly |badly |extremely |seriously )?allergic to|i~ have(?: an?| a severe| a bad| a serious)? allerg(?:y|ies) to|my allerg(?:y|ies)(?: is| are|:))",
        allergens,
    ),
    english(
        "allergic_to",
        r"i~ have an?(?: severe| bad| serious| mild)?(?= \w+(?: \w+)? allergy\b)",
        allergy,
    ),
    english(
        "intolerant_to",
        r"I'M~ intolerant (?:to|of)",
        things,
    ),
    english(
        "condition",
        rf"(?:i~ (?:have|suffer from|live with)|i(?:'ve| have) been diagnosed with|i was diagnosed with|I'M living with)(?= (?:\w+ ){{0,3}}?(?:{CONDITIONS})\b)",
        phrase,
    ),
    english(
        "condition",
        r"I'M~(?= (?:an? )?(?:type [12] )?(?:diabetic|asthmatic|celiac|coeliac|epileptic|lactose[\s-]intolerant|gluten[\s-]intolerant|dyslexic|colou?r[\s-]?blind|deaf|blind|hard of hearing|pregnant|autistic|bipolar|anemic|anaemic)\b(?! to\b))",
        phrase,
    ),
    english(
        "diet",
        r"I'M~(?: an?| a strict| strictly)?(?= (?:vegan|vegetarian|pescatarian|pescetarian|flexitarian|omnivore|carnivore)\b)",
        phrase,
    ),
    english(
        "diet",
        r"i~ (?:became|went|turned|switched to(?: an?)?|follow(?: an?)?|eat)(?: strictly)?(?= (?:vegan|vegetarian|pescatarian|keto|paleo|mediterranean)\b)",
        phrase,
    ),
    english(
        "dietary_need",
        r"(?:i|we)~ need(?= (?:vegetarian|vegan|halal|kosher|gluten[\s-]free|dairy[\s-]free|lactose[\s-]free) (?:food|meals?|options?|dishes)\b)",
        phrase,
    ),
    english(
        "dietary_need",
        r"(?:i~ (?:eat|keep|follow(?: an?)?|only eat|need to eat)|I'M on a)(?= (?:gluten[\s-]free|dairy[\s-]free|kosher|halal|low[\s-](?:carb|sodium|fodmap|fat|sugar)|keto)\b)",
        phrase,
    ),
    english(
        "does_not_eat",
        rf"i~ (?:don't|do not|can't|cannot|can not|never)(?: ever)? (?:eat|tolerate)(?!{NO_FOOD})|i~ (?:avoid(?: eating)?|can't have|cannot have)(?= (?:dairy|gluten|nuts|peanuts|meat|pork|beef|fish|shellfish|seafood|eggs|sugar|soy|wheat|lactose|milk|red meat)\b)",
        things,
    ),
    english(
        "does_not_drink",
        rf"i~ (?:don't|do not|can't|cannot|can not|never)(?: ever)? drink(?!{NO_FOOD})",
        things,
    ),
)
