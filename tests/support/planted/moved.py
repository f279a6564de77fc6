"""Plain changes of plans, in no words of regret: what was said first, and the same thing with another value later.

A third set, written before any rule for it; its first measure was 8 of 60, with 52 old values told as current. The rules
were then made with it in view, so it is no held-out set any more. ``BESIDE`` holds what looks like one and is none: nothing is replaced.
"""

from tests.support.planted.wordings import Planted


def _moved(said: str, corrected: str, gone: str, shown: str) -> Planted:
    return Planted("moved", said, shown, corrected, gone)


MOVED = (
    _moved("Delivery by 3 June would suit us.", "Things have changed: delivery by 27 May instead.", "3 June", "27 May"),
    _moved("Let's do the meeting at 3 pm.", "The meeting at 4:30 pm now, Ruth is late.", "3 pm", "4:30 pm"),
    _moved("Pickup on the 4th works for me.", "Better make it sooner, pickup on the 2nd.", "the 4th", "the 2nd"),
    _moved("There's a limit of $500 on the card.", "They raised it, so a limit of $800 now.", "$500", "$800"),
    _moved("Please book a table for 6.", "We are more now: a table for 8.", "table for 6", "table for 8"),
    _moved("Checkout by 10 am, they said.", "Late checkout granted, so checkout by 1 pm instead.", "10 am", "1 pm"),
    _moved(
        "I'd want a dentist appointment on 12 March.",
        "Can't do that after all; a dentist appointment on 15 March instead.",
        "12 March",
        "15 March",
    ),
    _moved("Reserve a room for 20 people.", "It has grown: a room for 35 people now.", "20 people", "35 people"),
    _moved("Installation on August 5, then.", "New plan: installation on August 9.", "August 5", "August 9"),
    _moved("We agreed on a deposit of €300.", "The landlord changed his mind, a deposit of €450 now.", "€300", "€450"),
    _moved(
        "Payment within 14 days is what we offer.",
        "From this month payment within 30 days instead.",
        "14 days",
        "30 days",
    ),
    _moved("The kick-off at 9 am suits everyone.", "The kick-off got pushed, it's at 10 am.", "9 am", "10 am"),
    _moved("Our train at 7:15 leaves from platform 2.", "We'll take a later one, the train at 8:45.", "7:15", "8:45"),
    _moved("Interview with Dana on 6 May.", "Interview with Dana moved to 8 May.", "6 May", "8 May"),
    _moved("I've asked for a loan of $20,000.", "We settled for less: a loan of $16,500.", "$20,000", "$16,500"),
    _moved("Ceremony at 2 pm, dinner later.", "Ceremony brought forward to 1 pm.", "2 pm", "1 pm"),
    _moved("Submit the draft by May 10.", "Submit the draft by May 8 instead.", "May 10", "May 8"),
    _moved("We need a discount of 10%.", "Let's push harder: a discount of 15% now.", "10%", "15%"),
    _moved("Put me down for a shift on 21 July.", "I'd rather have a shift on 23 July.", "21 July", "23 July"),
    _moved(
        "Arrival on the 18th of May.",
        "Arrival on the 20th of May now, the ferry is full.",
        "18th of May",
        "20th of May",
    ),
    _moved(
        "The parcel should arrive before October 3.",
        "It has to be here earlier, before September 28.",
        "October 3",
        "September 28",
    ),
    _moved("Rent of $1,450 is fine.", "Rent went up, it's $1,520 now.", "$1,450", "$1,520"),
    _moved(
        "Our flight leaves at 6:40 am.",
        "Our flight leaves at 9:05 am now, they rescheduled.",
        "6:40 am",
        "9:05 am",
    ),
    _moved("I'm aiming for a weight of 72 kg.", "New target: a weight of 70 kg.", "72 kg", "70 kg"),
    _moved("Return by 5 September, please.", "We're extending, return by 12 September.", "5 September", "12 September"),
    _moved("Set an alarm for 6:30 am.", "An alarm for 6:10 am instead, please.", "6:30 am", "6:10 am"),
    _moved("We're looking at a retention of 30 days.", "Legal changed it: retention of 90 days.", "30 days", "90 days"),
    _moved(
        "The webinar with Acme is on 3 October.",
        "The webinar with Acme was postponed to 17 October.",
        "3 October",
        "17 October",
    ),
    _moved("A session of 45 minutes should do.", "Let's do a longer session, 60 minutes.", "45 minutes", "60 minutes"),
    _moved("Budget for the venue: $2,000.", "We can go up to $2,600 for the venue now.", "$2,000", "$2,600"),
    _moved("交货日期4月14日之前就行。", "我们要提前，交货日期4月2日之前。", "4月14日", "4月2日"),
    _moved("4月20日之前交货没问题。", "现在要提前了，4月11日之前交货。", "4月20日", "4月11日"),
    _moved("会议在下午3点。", "会议推迟到下午5点。", "下午3点", "下午5点"),
    _moved("订一张6人的桌子。", "现在改订8人的桌子。", "6人", "8人"),
    _moved("8月4号取货可以。", "还是提前吧，8月2号取货。", "8月4号", "8月2号"),
    _moved("额度是500元。", "额度现在提高到800元。", "500元", "800元"),
    _moved("面试安排在5月6日。", "面试改到5月8日了。", "5月6日", "5月8日"),
    _moved("婚礼定在10月1日。", "婚礼提前到9月28日。", "10月1日", "9月28日"),
    _moved("押金要交3000元。", "押金现在要交4500元。", "3000元", "4500元"),
    _moved("火车票买7:15的那趟。", "火车票换成8:45的那趟。", "7:15", "8:45"),
    _moved("周转期定为14天。", "周转期改成30天。", "14天", "30天"),
    _moved("发布会在6月18日举行。", "发布会推迟了，在6月25日举行。", "6月18日", "6月25日"),
    _moved("房租每月4200元。", "房租涨了，现在每月4500元。", "4200元", "4500元"),
    _moved("作业要在3月10日前交。", "作业提前交，3月8日前。", "3月10日", "3月8日"),
    _moved("培训人数是20人。", "培训人数变了，现在是35人。", "20人", "35人"),
    _moved(
        "Lieferung bis 14. April passt.", "Wir brauchen sie früher: Lieferung bis 2. April.", "14. April", "2. April"
    ),
    _moved("Das Treffen um 15 Uhr passt mir.", "Das Treffen jetzt doch um 17 Uhr.", "15 Uhr", "17 Uhr"),
    _moved("Ein Tisch für 6 Personen, bitte.", "Doch lieber ein Tisch für 8 Personen.", "6 Personen", "8 Personen"),
    _moved("Livraison avant le 14 avril, ça ira.", "Finalement, livraison avant le 2 avril.", "14 avril", "2 avril"),
    _moved("Le rendez-vous à 15h30 me convient.", "Le rendez-vous est maintenant à 16h45.", "15h30", "16h45"),
    _moved(
        "Une caution de 300 euros, d'accord.", "Plutôt une caution de 450 euros maintenant.", "300 euros", "450 euros"
    ),
    _moved(
        "Entrega antes del 14 de abril está bien.",
        "Ahora la necesitamos antes: entrega antes del 2 de abril.",
        "14 de abril",
        "2 de abril",
    ),
    _moved("Reunión el 6 de mayo.", "Mejor reunión el 8 de mayo.", "6 de mayo", "8 de mayo"),
    _moved("Un límite de 500 euros.", "El límite ahora es de 800 euros.", "500 euros", "800 euros"),
    _moved(
        "Entrega até 14 de abril está ótimo.",
        "Agora precisamos antes: entrega até 2 de abril.",
        "14 de abril",
        "2 de abril",
    ),
    _moved("Consulta no dia 6 de maio.", "A consulta mudou para 8 de maio.", "6 de maio", "8 de maio"),
    _moved("Um desconto de 200 euros.", "Agora um desconto de 350 euros.", "200 euros", "350 euros"),
    _moved("Доставка до 14 апреля подойдёт.", "Нужно раньше: теперь доставка до 2 апреля.", "14 апреля", "2 апреля"),
    _moved("Встреча 6 мая.", "Встреча переносится на 8 мая.", "6 мая", "8 мая"),
    _moved("Аванс в 5000 рублей.", "Теперь аванс в 7000 рублей.", "5000 рублей", "7000 рублей"),
)

BESIDE = (
    ("Meeting with Ann at 3 pm.", "Meeting with Bob at 5 pm too."),
    ("I have meetings on 3 May.", "Now I have meetings on 5 May as well."),
    ("Delivery by 14 April is fine.", "Could we move delivery to 2 April now?"),
    ("The launch is on 3 May.", "What if we moved it to the 5th?"),
    ("My deadline is 3 May.", "My sister's new deadline is 9 May."),
    ("We meet on the 5th.", "We meet not only on the 5th but also on the 7th."),
    ("Delivery by 14 April for the chairs.", "Now the tables: delivery by 2 May for those."),
    ("The museum has a fee of $5.", "The castle has a new fee of $8."),
    ("Dinner with Maria at 7 pm.", "Dinner with Paul at 8 pm now."),
    ("A table for 6 at Luigi's.", "And a table for 4 at the new bar."),
    ("Our flight to Rome at 6:40 am.", "Our flight to Milan is now at 9:05 am."),
    ("Class on 3 May was great.", "Class on 5 May was better, now I'm tired."),
    ("The invoice of $300 is paid.", "There is a new invoice of $450."),
    ("I ran a race on 3 May.", "I signed up for another race on 9 May instead of resting."),
    ("Pickup on the 4th.", "Is pickup on the 2nd possible instead?"),
    ("My rent of $900 is due.", "Tom says his rent of $1,200 is too high now."),
    ("Check-in at 2 pm.", "If they changed it, check-in at 4 pm would be fine too."),
    ("Delivery by 14 April is fine.", "Maybe we'd rather have delivery by 2 April, not sure yet."),
    ("Standup at 9:30 am.", "Standup at 9:30 am, lunch at 12:15 pm now."),
    ("A budget of $500 for food.", "Now a budget of $300 for drinks."),
    ("周一的会议在下午3点。", "周二的会议现在在下午5点。"),
    ("3号交货。", "要是改成5号交货怎么样？"),
    ("我的会议在3月5日。", "小王的会议改到了3月9日。"),
    ("门票是50元。", "另外一张门票是80元。"),
    ("交货日期4月14日之前。", "不仅4月14日，4月20日也要交货。"),
    ("Das Treffen mit Anna ist um 15 Uhr.", "Das Treffen mit Jonas ist jetzt um 17 Uhr."),
    ("Livraison avant le 14 avril.", "Et si on avançait la livraison au 2 avril maintenant ?"),
    ("Reunión con Eva el 3 de mayo.", "Ahora tengo reunión con Luis el 5 de mayo."),
    ("Entrega até 14 de abril.", "Seria melhor a entrega até 2 de abril agora?"),
    ("Встреча с Анной 6 мая.", "Теперь встреча с Олегом 8 мая."),
)
"""What was said first, and what leaves it as it is."""
