"""Words that rules need lists of."""

__all__ = [
    "CONDITIONS",
    "KIN",
    "KNOWN_PEOPLE",
    "MONTHS",
    "NAMED_AFTER",
    "NATIONALITIES",
    "NO_FOOD",
    "OCCUPATIONS",
    "OWNED",
    "PETS",
    "PLANNED",
    "SOON",
    "TIMES",
]

MONTHS = r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sep(?:t(?:ember)?)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b"
SOON = r" (?:soon|today|tomorrow|now|next|this|coming|approaching|almost|around|in|over|here|already|the (?:day|week)|(?:mon|tues|wednes|thurs|fri|satur|sun)day)\b"
"""A day that is known only while it is near."""
TIMES = (
    rf"(?:(?:on|in|by|this|next|at|from|until|before|after|during|around|starting|beginning) (?:the (?:end|beginning|middle) of )?(?:the )?(?:\d|{MONTHS}|(?:mon|tues|wednes|thurs|fri|satur|sun)day|week|month|year|summer|winter|spring|fall|autumn|weekend|christmas|easter|semester)"
    r"|tomorrow|in (?:a|two|three|four|\d+|a few|a couple of) (?:days?|weeks?|months?|years?)|later this (?:week|month|year))"
)
NATIONALITIES = r"(?:american|british|english|scottish|irish|welsh|canadian|australian|german|french|spanish|italian|portuguese|dutch|belgian|swiss|austrian|swedish|norwegian|danish|finnish|polish|czech|hungarian|romanian|greek|turkish|russian|ukrainian|chinese|japanese|korean|vietnamese|thai|indian|pakistani|indonesian|filipino|filipina|malaysian|singaporean|taiwanese|brazilian|mexican|argentinian|colombian|peruvian|chilean|cuban|nigerian|kenyan|egyptian|moroccan|ethiopian|south african|iranian|iraqi|israeli|lebanese|saudi|swede|dane|finn|pole|brit|scot)"
KIN = r"(?:wife|husband|spouse|partner|fianc[eé]e?|girlfriend|boyfriend|mother|mom|mum|father|dad|son|daughter|(?:older|younger|big|little|elder|twin) (?:brother|sister)|brother|sister|grandmother|grandma|grandfather|grandpa|aunt|uncle|cousin|niece|nephew|stepson|stepdaughter|dog|cat|puppy|kitten|horse|parrot|rabbit|hamster|pet|best friend|roommate|boss)"
KNOWN_PEOPLE = r"(?:friend|colleague|coworker|co-worker|mentor|manager|neighbou?r|therapist|doctor|teacher|coach|assistant|housemate|flatmate|classmate)"
PETS = r"(?:retriever|labrador|poodle|beagle|terrier|bulldog|husky|corgi|dachshund|chihuahua|spaniel|shepherd|kitty|turtle|guinea pig|goldfish|snake|tortoise|budgie)"
CONDITIONS = r"(?:(?:type [12] )?diabetes|asthma|epilepsy|hypertension|high blood pressure|low blood pressure|arthritis|celiac disease|coeliac disease|crohn's(?: disease)?|adhd|add|autism|dyslexia|anxiety disorder|depression|ptsd|ocd|bipolar disorder|migraines|chronic \w+|a heart condition|heart disease|a pacemaker|insomnia|sleep apnea|eczema|psoriasis|ibs|endometriosis|fibromyalgia|multiple sclerosis|parkinson's|lupus|tinnitus|scoliosis|anemia|lactose intolerance|gluten intolerance|a thyroid \w+|hypothyroidism|cancer|glaucoma|vertigo)"
_HEADS = (
    "teacher|engineer|developer|programmer|nurse|doctor|physician|surgeon|dentist|lawyer|attorney|paralegal|accountant|designer|architect|artist|painter|writer|author|journalist|editor|photographer|musician|singer|actor|actress|dancer"
    "|chef|cook|baker|barista|waiter|waitress|bartender|manager|director|producer|consultant|analyst|scientist|researcher|professor|lecturer|tutor|student|librarian|pharmacist|therapist|psychologist|psychiatrist|counselor|counsellor|social worker"
    "|electrician|plumber|carpenter|mechanic|driver|pilot|flight attendant|firefighter|police officer|paramedic|soldier|veteran|farmer|gardener|cleaner|cashier|salesperson|salesman|realtor|real estate agent|broker|banker|entrepreneur|freelancer"
    "|business owner|founder|ceo|cto|cfo|coo|executive|administrator|assistant|receptionist|secretary|recruiter|marketer|strategist|technician|technologist|technologist|chemist|biologist|physicist|mathematician|economist|historian|translator|interpreter|veterinarian|vet|coach|trainer|instructor"
    "|stay-at-home (?:mom|dad|mum|parent)|homemaker|housewife|contractor|builder|welder|tailor|hairdresser|barber|stylist|nanny|caregiver|caretaker|security guard|officer|judge|politician|priest|pastor|imam|rabbi|clerk|planner|coordinator|specialist|supervisor|sysadmin|intern|apprentice|postdoc|graduate student|phd student|phd candidate|sculptor|illustrator|animator|filmmaker|screenwriter|blogger|streamer|athlete|footballer|basketball player|gamer|barista|florist|butcher|fisherman|sailor|geologist|astronomer|statistician|actuary|auditor|surveyor|optometrist|midwife|physiotherapist|nutritionist|dietitian|radiologist|cardiologist|pediatrician|anesthesiologist|dermatologist|neurologist|oncologist"
)
OCCUPATIONS = rf"(?!(?:former|ex-|ex |retired |aspiring|future|wannabe|would-be|hopeless|terrible|bad|great|good|slow|fast|quick|visual|big|huge|lifelong|fellow|excited|little|real|true|natural|born|better|nervous|careful|safe)\b)(?:(?:[\w/&'-]+ ){{0,4}}?)(?:{_HEADS})\b"
NO_FOOD = r" (?:right now|now|yet|any ?more|today|tonight|tomorrow|until|till|before|after|past|out|properly|well|normally|much|enough|alone|here|there|solids? yet|because|when|while|as|or|and)\b"
"""What may follow "eat" and "drink" that is neither."""
NAMED_AFTER = r" (?:questions?|allerg(?:y|ies)|races?|wheels?|plants?|shows?|pictures?|pics?|photos?|videos?|jokes?|memes?|problems?|issues?|stor(?:y|ies)|food|beds?|toys?|treats?|costumes?|walkers?|sitters?|person|people|lovers?|tattoos?|paintings?|posters?|statues?|calendars?|shirts?|mugs?|phobia|appointments?|emojis?|compan(?:y|ies)|organi[sz]ations?|sites?|projects?|accounts?|bowls?|collars?|stickers?)\b"
"""What is named after an animal or a relative: whoever has it need not have them."""
OWNED = r"(?:car|suv|truck|van|motorcycle|motorbike|bike|bicycle|e-bike|scooter|boat|house|condo|apartment|flat|cabin|cottage|farm|garden|greenhouse|laptop|macbook|desktop|pc|computer|tablet|ipad|iphone|android phone|smartphone|camera|drone|telescope|guitar|piano|violin|keyboard|drum kit|drums|printer|3d printer|console|playstation|ps5|xbox|nintendo switch|tesla|toyota|honda|ford|bmw|audi|volkswagen|subaru|smartwatch|apple watch|fitbit|kindle|treadmill|sewing machine|camper|rv|motorhome|tent|kayak|surfboard|driver's licen[cs]e|driving licen[cs]e|passport|visa)"
PLANNED = r"(?:move|relocate|travel|fly|visit|go|study|learn|marry|get married|get engaged|retire|quit|resign|graduate|apply|open|start|launch|found|buy|purchase|rent|sell|renovate|adopt|have (?:a|another) (?:baby|child|kid)|run|train|compete|volunteer|write|publish|record|perform|take (?:a|an|the|part|up)|join|enrol|enroll|attend|host|organi[sz]e|throw|spend|stay|return|come back|leave|finish|hike|climb|camp|build|become|propose|work|save|lose|read|hire|switch|expand|celebrate|donate|audition|teach|give)"
"""Verbs of what people plan for their lives, not for the file that they have open."""
