"""English words that say nothing about what a turn is about. Lower case, apostrophes left out."""

from typing import Final

STOP_WORDS: Final = frozenset(
    """
    a about above after again against all also am an and any are arent as at be because been before being below
    between both but by can cannot cant could couldnt did didnt do does doesnt doing dont down during each few for
    from further get got had hadnt has hasnt have havent having he hed her here hers herself hes him himself his how
    i if im in into is isnt it its itself ive just lets me might more most must my myself no nor not now
    of off ok okay on once only or other our ours ourselves out over own please really same shall she should shouldnt
    so some such than thanks that thats the their theirs them themselves then there theres these they theyre theyve
    this those through to too under until up us very was wasnt we well were werent weve what whats when where which
    while who whom whose why will with wont would wouldnt yes you youd youll your youre yours yourself youve
    """.split()
)
