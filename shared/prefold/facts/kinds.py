"""Words for the kinds of things of which somebody has a favorite. Data only."""

from typing import Final

__all__ = ["KINDS"]

KINDS: Final[dict[str, str]] = {
    kind: name
    for name, kinds in {
        "color": "colour 颜色",
        "food": "foods dish 食物 菜 美食 食品",
        "drink": "drinks beverage 饮料",
        "fruit": "fruits 水果",
        "movie": "movies film films 电影 影片",
        "series": "tv_show tv_shows show tv_series 电视剧 剧",
        "book": "books 书 书籍 小说",
        "author": "authors writer 作家 作者",
        "song": "songs 歌 歌曲",
        "music": "音乐",
        "singer": "singers 歌手",
        "band": "bands 乐队",
        "artist": "artists 艺术家",
        "actor": "actors 演员",
        "game": "games 游戏",
        "sport": "sports 运动",
        "team": "teams 球队",
        "animal": "animals 动物",
        "season": "seasons 季节",
        "city": "cities 城市",
        "number": "数字",
        "subject": "科目 学科",
        "restaurant": "restaurants 餐厅 饭馆",
        "holiday": "holidays 节日",
        "flower": "flowers 花",
    }.items()
    for kind in kinds.split()
}
"""Of which something is the user's favorite: one word for each."""
