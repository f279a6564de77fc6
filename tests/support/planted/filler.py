"""Talk full of values in passing, for where there are no recorded conversations."""

from typing import Any


def _talk(*texts: str) -> tuple[dict[str, Any], ...]:
    return tuple(
        {"role": "user" if number % 2 == 0 else "assistant", "content": text} for number, text in enumerate(texts)
    )


SAMPLES = (
    _talk(
        "How do I read a file of 250 MB line by line in Python 3.11?",
        "Open it with a context manager and loop over it: a file object yields one line at a time, so memory stays "
        "near 64 KB whatever its size. Measure with `tracemalloc`; I saw 0.8 s for 1,200,000 lines on 2024-03-02.",
        "I get UnicodeDecodeError: 'utf-8' codec can't decode byte 0xff in position 0, what now?",
        "The file begins with a byte order mark of UTF-16. Pass encoding='utf-16', or run `file data.txt` to be sure.",
        "It works, the total is 48,211 rows and 17 columns. Can it be faster?",
        "Read bytes in blocks of 1 MB and split them yourself; expect a factor of 2 to 3 at 400 MB/s from the disk.",
    ),
    _talk(
        "We went hiking on Saturday, 14 km in all, and saw two deer near the lake!",
        "That sounds lovely. The loop around the lake is 9 km, so you must have taken the ridge at 1,100 m too.",
        "Yes, and my sister brought her dog Biscuit, who is 3 years old and never gets tired.",
        "Dogs of that age easily run 20 km a day. Did you stop at the hut? Soup was €6.50 there last year.",
        "We did, I had the pancakes for $8. We plan to go again on 3 May with four friends.",
        "Then look at the forecast on Thursday; the ferry at 8:15 is usually half empty.",
    ),
    _talk(
        "这周的销售额是多少？我看到周三有1280单。",
        "这周一共5,764单，比上周多7%。周三因为直播活动最高，平均每单89元。",
        "客单价好像降了，我记得三月是96元，帮我算算差多少。",
        "降了7元，大约7.3%。主要是满200减30的活动从3月18日开始，占了订单的41%。",
        "那下周二下午3点开会再说吧，我会带两个同事来。",
        "好的，我把图表放在 /reports/week12.xlsx，里面有12张表。",
    ),
    _talk(
        "What should I cook tonight? I have 500 g of rice, 3 eggs and some spinach.",
        "Fried rice: cook 300 g of rice in 450 ml of water, let it cool for 20 minutes, then fry it with the eggs.",
        "My brother likes it hot, he always adds two spoons of chilli.",
        "Add them at the end, over a low flame, or the kitchen fills with smoke. Serves 4 for about $5.",
        "We ate at 7:30 pm and there is enough left for tomorrow, thank you!",
        "Keep it below 5 degrees and eat it within 2 days.",
    ),
)
