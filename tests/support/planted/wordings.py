"""What people state once, early in a conversation, and what they take back: two sets of fifty.

``KNOWN`` was looked at while the ledger was written. ``HELD_OUT`` was written at the same time, in other words. Its first
measure (42 of 50 after thirty swaps at 8,000 tokens) led to two general rules, what is said at the very beginning counts
more and a sentence that names old and new value is a correction, but to no rule for one of its lines.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Planted:
    """Something that must be in every later context."""

    kind: str
    said: str
    """The user's words."""
    shown: str
    """What must be there, letter by letter."""
    corrected: str = ""
    """What the user says later; then ``shown`` is of this."""
    gone: str = ""
    """The value that was taken back: only ever shown as replaced."""


KNOWN = (
    Planted("allergy", "By the way, I'm allergic to tree nuts, cashews above all.", "cashews"),
    Planted(
        "allergy", "One thing to know about me: penicillin gives me hives, so no penicillin, please.", "penicillin"
    ),
    Planted("diet", "We're a vegan household.", "vegan household"),
    Planted("budget", "All in, I can spend 2,350 euros on this.", "2,350 euros"),
    Planted("budget", "We have $1,840 to work with and not a cent more.", "$1,840"),
    Planted("email", "The best address for me is nora.vance@fastpost.example.", "nora.vance@fastpost.example"),
    Planted("email", "Please send every invoice to billing@harlow-mills.example.", "billing@harlow-mills.example"),
    Planted("phone", "If something comes up, my cell is (312) 555-0147.", "(312) 555-0147"),
    Planted("order", "This is about order 4471-KX-0092, the blue armchair.", "4471-KX-0092"),
    Planted("order", "The confirmation number they gave me is QZ7H2M.", "QZ7H2M"),
    Planted("account", "You'll find me in your system under customer no. 88204617.", "88204617"),
    Planted("city", "I'm writing from Ljubljana.", "Ljubljana"),
    Planted("city", "We moved to Tromsø last spring and still live there.", "Tromsø"),
    Planted("address", "Deliveries go to 48 Birchwood Lane, Apt 6.", "48 Birchwood Lane, Apt 6"),
    Planted("deadline", "It has to be finished by the 19th of November.", "19th of November"),
    Planted("deadline", "My visa runs out on 2026-09-04, so we need to be done before that.", "2026-09-04"),
    Planted("name", "The name's Ignatius Okafor, nice to meet you.", "Ignatius Okafor"),
    Planted("medical", "I have type 1 diabetes and use an insulin pump.", "insulin pump"),
    Planted("instruction", "Never phone me at the office, write instead.", "Never phone me at the office"),
    Planted("instruction", "From now on please give all temperatures in kelvin.", "temperatures in kelvin"),
    Planted("limit", "The room can't hold more than 26 guests.", "26 guests"),
    Planted("limit", "Our cluster is pinned to Postgres 13.4 and upgrading is off the table.", "Postgres 13.4"),
    Planted(
        "correction",
        "My login is piet.k@oldmail.example.",
        "piet.kramer@newmail.example",
        "Scratch that, use piet.kramer@newmail.example instead from now on.",
        "piet.k@oldmail.example",
    ),
    Planted(
        "correction",
        "Let's plan the inspection for the 12th of June.",
        "17th of June",
        "No, I meant the 17th of June.",
        "12th of June",
    ),
    Planted(
        "correction",
        "The catering budget is $4,300.",
        "$3,870",
        "Sorry, the catering budget is $3,870, I misread the sheet.",
        "$4,300",
    ),
    Planted("correction", "Ship the samples to Antwerp.", "Ghent", "Not Antwerp, I meant Ghent.", "Antwerp"),
    Planted(
        "correction",
        "We need 14 chairs for the hall.",
        "19 chairs",
        "Correction: 19 chairs for the hall.",
        "14 chairs",
    ),
    Planted(
        "correction",
        "The guest of honour is Katrin Stolz.",
        "Catrin Stoltz",
        "I misspelled it: it's Catrin Stoltz with a C.",
        "Katrin Stolz",
    ),
    Planted(
        "correction",
        "Call me on 415-555-0122.",
        "415-555-0177",
        "That number is wrong, the right one is 415-555-0177.",
        "415-555-0122",
    ),
    Planted(
        "correction",
        "The handover is at 9:30 am.",
        "11:15 am",
        "The handover has moved to 11:15 am.",
        "9:30 am",
    ),
    Planted("allergy", "对了，我对芒果过敏，碰都不能碰。", "芒果"),
    Planted("diet", "我们全家都吃素。", "全家都吃素"),
    Planted("budget", "这次装修我最多能拿出八万五千元。", "八万五千元"),
    Planted("email", "有事发到 liu.qing@kuaiyou.example 就行。", "liu.qing@kuaiyou.example"),
    Planted("phone", "我手机是13857190246。", "13857190246"),
    Planted("order", "我要问的订单是 TB-88120-774。", "TB-88120-774"),
    Planted("city", "我人在绍兴。", "绍兴"),
    Planted("deadline", "论文要在11月23日之前交。", "11月23日"),
    Planted("name", "我姓欧阳，叫我小欧就好。", "欧阳"),
    Planted("instruction", "以后别给我发语音，只发文字。", "别给我发语音"),
    Planted("medical", "我有哮喘，不能爬太高的山。", "哮喘"),
    Planted(
        "correction",
        "登录邮箱是 wei88@jiuyou.example。",
        "wei99@jiuyou.example",
        "不对，我是说 wei99@jiuyou.example。",
        "wei88@jiuyou.example",
    ),
    Planted("correction", "聚会定在8月6号。", "8月13号", "聚会改成8月13号了。", "8月6号"),
    Planted("correction", "买电脑的预算是6000元。", "7200元", "预算提到7200元吧，之前说的不算。", "6000元"),
    Planted("allergy", "そばアレルギーなので、そばは絶対に避けてください。", "そばアレルギー"),
    Planted("budget", "Mein Budget liegt bei 1.750 €, mehr geht nicht.", "1.750 €"),
    Planted("allergy", "Je suis allergique aux arachides.", "arachides"),
    Planted("correction", "Mi vuelo sale el 3 de mayo.", "8 de mayo", "No, quise decir el 8 de mayo.", "3 de mayo"),
    Planted("email", "Meu e-mail é joana.prado@correio.example.", "joana.prado@correio.example"),
    Planted("instruction", "Никогда не звоните мне после 20:00.", "не звоните мне после 20:00"),
)

HELD_OUT = (
    Planted("allergy", "Just so you know, shellfish sends me to hospital.", "shellfish sends me to hospital"),
    Planted("allergy", "Heads-up: my daughter has a severe sesame allergy.", "sesame"),
    Planted("diet", "I keep kosher.", "keep kosher"),
    Planted("budget", "Please keep the whole thing under £950.", "£950"),
    Planted("budget", "I've set aside 12,400 kronor for the repair.", "12,400 kronor"),
    Planted("email", "Reach me via t.abara@lumenmail.example, I read that daily.", "t.abara@lumenmail.example"),
    Planted("email", "The account is registered to office@pinewood-dental.example.", "office@pinewood-dental.example"),
    Planted("phone", "Text me at +44 7700 900318 when it ships.", "+44 7700 900318"),
    Planted("order", "My case reference: HW/2207/518.", "HW/2207/518"),
    Planted("order", "The tracking code on the parcel reads JD0146003827.", "JD0146003827"),
    Planted("account", "My member number is 5530-2281.", "5530-2281"),
    Planted("city", "Home for me is Valparaíso.", "Valparaíso"),
    Planted("city", "I work out of our Gdańsk branch.", "Gdańsk"),
    Planted("address", "My flat is at 7 Rue des Lilas, third floor.", "7 Rue des Lilas"),
    Planted("deadline", "The grant application closes on February 26 at noon.", "February 26"),
    Planted("deadline", "No later than the 30th of August, or the contract lapses.", "30th of August"),
    Planted("name", "I'm Oluwaseun, by the way.", "Oluwaseun"),
    Planted("medical", "I'm on warfarin, which rules out a lot of painkillers.", "warfarin"),
    Planted("instruction", "Don't ever mention the surprise party to Leona.", "surprise party to Leona"),
    Planted("instruction", "Keep every answer below 80 words, please.", "below 80 words"),
    Planted("limit", "My suitcase may weigh 23 kg at the very most.", "23 kg"),
    Planted("limit", "We're stuck on Python 3.8.10 because of the vendor's driver.", "Python 3.8.10"),
    Planted(
        "correction",
        "You can write to me at dana@firstpost.example.",
        "dana.r@secondpost.example",
        "Oops, that mailbox is closed; dana.r@secondpost.example is the one to use.",
        "dana@firstpost.example",
    ),
    Planted(
        "correction",
        "The recital is on March 9.",
        "March 19",
        "It isn't March 9 after all but March 19.",
        "March 9",
    ),
    Planted(
        "correction",
        "We've got $5,240 for the kitchen.",
        "$4,750",
        "Make that $4,750 for the kitchen, the bank said no to the rest.",
        "$5,240",
    ),
    Planted(
        "correction",
        "I'd like to fly out of Lyon.",
        "Geneva",
        "Geneva instead of Lyon, please, it's closer.",
        "Lyon",
    ),
    Planted(
        "correction",
        "Two adults and 3 children are coming.",
        "4 children",
        "I was mistaken, it's 4 children.",
        "3 children",
    ),
    Planted(
        "correction",
        "The order is NP-33018.",
        "NP-33081",
        "Wrong number, sorry. The order is NP-33081.",
        "NP-33018",
    ),
    Planted(
        "correction",
        "You can call 206-555-0115.",
        "206-555-0163",
        "Please replace my old number with 206-555-0163.",
        "206-555-0115",
    ),
    Planted(
        "correction",
        "Delivery by 14 April is fine.",
        "2 April",
        "We need it sooner: delivery by 2 April now.",
        "14 April",
    ),
    Planted("allergy", "我吃花生会休克。", "花生会休克"),
    Planted("diet", "我是回民，猪肉一律不碰。", "猪肉一律不碰"),
    Planted("budget", "租房预算控制在每月4200块以内。", "4200块"),
    Planted("email", "我的工作邮箱：chen.lan@hezuo.example", "chen.lan@hezuo.example"),
    Planted("phone", "打我电话 021-5588-3097 也行。", "021-5588-3097"),
    Planted("order", "快递单号 SF1420086513397，麻烦查一下。", "SF1420086513397"),
    Planted("city", "我常住昆明。", "昆明"),
    Planted("deadline", "签证9月17号到期，得赶在那之前回来。", "9月17号"),
    Planted("name", "我名字是司徒静。", "司徒静"),
    Planted("instruction", "千万不要把这件事告诉我爸。", "不要把这件事告诉我爸"),
    Planted("medical", "我怀孕五个月了。", "怀孕五个月"),
    Planted("correction", "我电话是13601180422。", "13601180244", "号码说错了，是13601180244。", "13601180422"),
    Planted("correction", "我们周年纪念是10月2日。", "10月12日", "记错了，应该是10月12日。", "10月2日"),
    Planted("correction", "我要去成都出差。", "重庆", "不是成都，是重庆。", "成都"),
    Planted("budget", "来月の予算は8万円までです。", "8万円"),
    Planted("diet", "Ich vertrage keine Laktose.", "keine Laktose"),
    Planted(
        "correction",
        "Le rendez-vous est le 14 mars.",
        "21 mars",
        "Non, je voulais dire le 21 mars.",
        "14 mars",
    ),
    Planted("instruction", "Nunca me llamen por la noche.", "Nunca me llamen por la noche"),
    Planted("allergy", "Sou alérgica a camarão.", "camarão"),
    Planted("budget", "Мой бюджет — 45 000 рублей.", "45 000 рублей"),
)
