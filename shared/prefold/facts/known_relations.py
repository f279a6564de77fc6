"""Relations that we know: what they are called, whether a new object replaces the old one, how they read. Data only."""

from dataclasses import dataclass
from typing import Final

from prefold.facts.rows import Category

__all__ = ["KNOWN", "LASTING", "Relation"]


@dataclass(frozen=True, slots=True)
class Relation:
    """One relation under its own name."""

    name: str
    category: Category
    is_single: bool
    phrase: str
    """``{s}`` is the subject, ``{o}`` the object."""
    others: tuple[str, ...] = ()
    """Other names of it, in the form of ``relations.normal_relation``."""
    opposite: str = ""
    """A relation that the same object cannot have at the same time."""

    @property
    def is_entity(self) -> bool:
        """Whether its objects are names of their own: of people, places, organisations."""
        return self.name in _NAMING


def _one(name: str, category: Category, phrase: str, others: str = "") -> Relation:
    return Relation(name, category, True, phrase, tuple(others.split()))


def _many(name: str, category: Category, phrase: str, others: str = "", opposite: str = "") -> Relation:
    return Relation(name, category, False, phrase, tuple(others.split()), opposite)


KNOWN: Final[tuple[Relation, ...]] = (
    _one(
        "name",
        "identity",
        "{s}'s name is {o}",
        "full_name called is_called named is_named first_name real_name my_name goes_by_name 姓名 名字 叫 叫做 名叫",
    ),
    _one(
        "nickname",
        "identity",
        "{s} goes by {o}",
        "goes_by prefers_to_be_called called_by preferred_name 昵称 小名 nick_name",
    ),
    _one("age", "identity", "{s} is {o} years old", "is_aged aged years_old age_years 年龄 岁数 年纪"),
    _one(
        "birthday", "identity", "{s}'s birthday is {o}", "birth_date date_of_birth born_on dob birthdate 生日 出生日期"
    ),
    _one(
        "born_in", "identity", "{s} was born in {o}", "was_born_in birthplace place_of_birth birth_place 出生地 出生于"
    ),
    _one("birth_year", "identity", "{s} was born in {o}", "year_of_birth birthyear 出生年份"),
    _one("membership", "identity", "{s} is a {o}", "member_status loyalty_status 会员"),
    _one("anniversary", "family", "{s}'s anniversary is {o}", "wedding_anniversary wedding_date 结婚纪念日 纪念日"),
    _one("handedness", "identity", "{s} is {o}", "dominant_hand 惯用手"),
    _one("shoe_size", "identity", "{s}'s shoe size is {o}", "shoes_size 鞋码"),
    _one("clothing_size", "identity", "{s}'s clothing size is {o}", "clothes_size dress_size shirt_size 衣服尺码"),
    _one("gender", "identity", "{s}'s gender is {o}", "sex 性别"),
    _one("pronouns", "identity", "{s}'s pronouns are {o}", "uses_pronouns preferred_pronouns"),
    _one("nationality", "identity", "{s}'s nationality is {o}", "citizenship citizen_of is_citizen_of 国籍"),
    _one("native_language", "identity", "{s}'s native language is {o}", "mother_tongue first_language 母语"),
    _one("height", "identity", "{s}'s height is {o}", "is_tall 身高"),
    _one("weight", "health", "{s}'s weight is {o}", "weighs 体重"),
    _many("speaks", "identity", "{s} speaks {o}", "speaks_language language languages language_spoken 会说 语言"),
    _many(
        "from",
        "identity",
        "{s} comes from {o}",
        "is_from comes_from originally_from hails_from 来自 origin",
    ),
    _one(
        "email",
        "contact",
        "{s}'s email is {o}",
        "e_mail mail email_address e_mail_address mail_address mailbox account_email contact_email 邮箱 电子邮箱 电子邮件 邮件地址 邮箱地址",
    ),
    _one(
        "work_email",
        "contact",
        "{s}'s work email is {o}",
        "office_email business_email company_email 工作邮箱 公司邮箱",
    ),
    _one(
        "phone",
        "contact",
        "{s}'s phone number is {o}",
        "phone_number telephone telephone_number mobile mobile_number mobile_phone cell cell_phone cellphone cell_number contact_number 电话 手机 手机号 电话号码 手机号码",
    ),
    _one(
        "address",
        "contact",
        "{s}'s address is {o}",
        "home_address postal_address street_address mailing_address delivery_address shipping_address 地址 住址 家庭住址",
    ),
    _one("website", "contact", "{s}'s website is {o}", "homepage web_site site url 网站 主页"),
    _one("username", "contact", "{s}'s user name is {o}", "user_name handle login account_name 用户名 账号"),
    _one("home_town", "location", "{s}'s home town is {o}", "hometown 老家 家乡"),
    _one("grew_up_in", "location", "{s} grew up in {o}", "raised_in was_raised_in"),
    _one("last_name", "identity", "{s}'s last name is {o}", "surname family_name 姓"),
    _one("user_id", "contact", "{s}'s id is {o}", "id customer_id member_id"),
    _one("zip_code", "contact", "{s}'s zip code is {o}", "zip postcode postal_code 邮编"),
    _one("wechat", "contact", "{s}'s WeChat is {o}", "wechat_id weixin 微信 微信号"),
    _one("income", "work", "{s}'s income is {o}", "salary earns 收入 工资"),
    _one(
        "lives_in",
        "location",
        "{s} lives in {o}",
        "moved_to moved_into based_in is_based_in resides_in residence location home_city city home live_in living_in lives_at live_at lives relocated_to settled_in home_country country_of_residence stays_in 住在 居住地 居住在 现居 现居地 住 搬到 搬到了 搬去 所在地 所在城市 常住地",
    ),
    _one(
        "located_in",
        "location",
        "{s} is located in {o}",
        "is_located_in headquartered_in is_headquartered_in headquarters 位于 坐落于 总部",
    ),
    _one("time_zone", "location", "{s}'s time zone is {o}", "timezone tz 时区"),
    _one(
        "works_at",
        "work",
        "{s} works at {o}",
        "works_for employer employed_at employed_by company work_at work_for workplace joined started_at working_at working_for is_employed_by is_employed_at 工作单位 公司 就职于 任职于 在职 工作地点 雇主",
    ),
    _one(
        "occupation",
        "work",
        "{s} works as {o}",
        "works_as job profession job_title title role position work_as is_employed_as career is_a_job has_job job_role 职业 工作 职位 岗位 从事",
    ),
    _one("works_in", "work", "{s} works in {o}", "industry field sector department 行业 部门"),
    _one(
        "studies_at",
        "work",
        "{s} studies at {o}",
        "school university college attends student_at enrolled_at goes_to_school_at 学校 大学 就读于",
    ),
    _many("studies", "work", "{s} studies {o}", "major majors_in field_of_study studying is_studying 专业 主修"),
    _one("boss", "work", "{s}'s boss is {o}", "manager supervisor line_manager reports_to 老板 上司 领导"),
    _many("colleague", "work", "{s}'s colleague is {o}", "coworker co_worker works_with 同事"),
    _many("uses", "possession", "{s} uses {o}", "is_using works_with_tool 使用 用"),
    _one("marital_status", "family", "{s}'s marital status is {o}", "relationship_status is_married 婚姻状况"),
    _one(
        "spouse",
        "family",
        "{s}'s spouse is {o}",
        "married_to is_married_to wife husband 妻子 丈夫 老婆 老公 配偶 爱人 has_spouse",
    ),
    _one(
        "partner",
        "family",
        "{s}'s partner is {o}",
        "girlfriend boyfriend fiance fiancee dating is_dating engaged_to 女朋友 男朋友 女友 男友 对象 伴侣",
    ),
    _one("mother", "family", "{s}'s mother is {o}", "mom mum 妈妈 母亲 妈"),
    _one("father", "family", "{s}'s father is {o}", "dad 爸爸 父亲 爸"),
    _many("child", "family", "{s}'s child is {o}", "has_child children kid kids 孩子 小孩 子女"),
    _many("son", "family", "{s}'s son is {o}", "has_son 儿子"),
    _many("daughter", "family", "{s}'s daughter is {o}", "has_daughter 女儿"),
    _many(
        "sister",
        "family",
        "{s}'s sister is {o}",
        "has_sister 姐姐 妹妹 姐妹 older_sister younger_sister big_sister little_sister elder_sister twin_sister 姐 妹",
    ),
    _many(
        "brother",
        "family",
        "{s}'s brother is {o}",
        "has_brother 哥哥 弟弟 兄弟 older_brother younger_brother big_brother little_brother elder_brother twin_brother 哥 弟",
    ),
    _many("grandmother", "family", "{s}'s grandmother is {o}", "grandma granny 奶奶 外婆 姥姥"),
    _many("grandfather", "family", "{s}'s grandfather is {o}", "grandpa granddad 爷爷 外公 姥爷"),
    _many("grandchild", "family", "{s}'s grandchild is {o}", "grandson granddaughter 孙子 孙女"),
    _many("stepchild", "family", "{s}'s stepchild is {o}", "stepson stepdaughter"),
    _many("aunt", "family", "{s}'s aunt is {o}", "阿姨 姑姑 姨妈"),
    _many("uncle", "family", "{s}'s uncle is {o}", "叔叔 舅舅"),
    _many("cousin", "family", "{s}'s cousin is {o}", "表哥 表弟 表姐 表妹 堂哥 堂弟"),
    _many("niece", "family", "{s}'s niece is {o}", "侄女"),
    _many("nephew", "family", "{s}'s nephew is {o}", "侄子"),
    _many("roommate", "family", "{s}'s roommate is {o}", "flatmate housemate 室友"),
    _many("neighbor", "family", "{s}'s neighbor is {o}", "neighbour 邻居"),
    _many("classmate", "family", "{s}'s classmate is {o}", "同学"),
    _many("mentor", "work", "{s}'s mentor is {o}", "导师"),
    _many("coach", "work", "{s}'s coach is {o}", "教练"),
    _many("teacher", "work", "{s}'s teacher is {o}", "老师"),
    _many("assistant", "work", "{s}'s assistant is {o}", "助理"),
    _many("doctor", "health", "{s}'s doctor is {o}", "gp physician 医生"),
    _many("therapist", "health", "{s}'s therapist is {o}", "counselor"),
    _one("daughter_age", "family", "{s}'s daughter is {o} years old", "age_of_daughter 女儿年龄"),
    _one("son_age", "family", "{s}'s son is {o} years old", "age_of_son 儿子年龄"),
    _many("friend", "family", "{s}'s friend is {o}", "friends best_friend friend_of has_friend 朋友 好友 close_friend"),
    _many("has_pet", "family", "{s} has a pet: {o}", "pet pets pet_name 宠物 养了 horse parrot rabbit hamster"),
    _many("dog", "family", "{s} has a dog: {o}", "has_dog dog_name 狗 puppy 小狗 狗狗"),
    _many("cat", "family", "{s} has a cat: {o}", "has_cat cat_name 猫 kitten 小猫 猫咪"),
    _one("children_count", "family", "{s} has {o} children", "number_of_children has_children_count kids_count"),
    _many(
        "not_allergic_to",
        "health",
        "{s} is not allergic to {o}",
        "is_not_allergic_to has_no_allergy_to no_allergy",
        "allergic_to",
    ),
    _many(
        "allergic_to",
        "health",
        "{s} is allergic to {o}",
        "is_allergic_to allergy allergies has_allergy has_allergy_to allergic 过敏 对过敏 过敏源 过敏原",
        "not_allergic_to",
    ),
    _many(
        "intolerant_to",
        "health",
        "{s} does not tolerate {o}",
        "is_intolerant_to intolerance intolerant_of is_intolerant_of food_intolerance cannot_tolerate 不耐受",
    ),
    _many(
        "condition",
        "health",
        "{s} has {o}",
        "has_condition medical_condition diagnosis diagnosed_with is_diagnosed_with was_diagnosed_with suffers_from has_disease illness disease health_condition 疾病 患有 病史 得了",
    ),
    _many(
        "takes_medication",
        "health",
        "{s} takes {o}",
        "takes medication medicine takes_medicine is_on_medication prescribed is_prescribed 服用 吃药 药物",
    ),
    _one("blood_type", "health", "{s}'s blood type is {o}", "blood_group 血型"),
    _one(
        "diet",
        "health",
        "{s}'s diet is {o}",
        "follows_diet dietary_preference dietary_restriction is_diet eating_habit 饮食习惯 饮食",
    ),
    _many(
        "likes",
        "preference",
        "{s} likes {o}",
        "loves enjoys like love enjoy is_fan_of fan_of fond_of is_fond_of is_into passionate_about is_passionate_about adores likes_to loves_to enjoys_to 喜欢 爱 喜爱 热爱 interested_in is_interested_in interest interests has_interest_in 感兴趣",
        "dislikes",
    ),
    _many(
        "dislikes",
        "preference",
        "{s} dislikes {o}",
        "hates dislike hate cannot_stand can_not_stand detests avoids is_not_fan_of not_fan_of does_not_like does_not_enjoy does_not_love 不喜欢 讨厌 不爱 厌恶",
        "likes",
    ),
    _many(
        "prefers",
        "preference",
        "{s} prefers {o}",
        "prefer preference preferences has_preference 偏好",
        "does_not_prefer",
    ),
    _many("does_not_prefer", "preference", "{s} does not prefer {o}", "", "prefers"),
    _many(
        "hobby",
        "preference",
        "{s}'s hobby is {o}",
        "hobbies has_hobby plays_sport pastime 爱好 兴趣 兴趣爱好 业余爱好",
    ),
    _many("learning", "preference", "{s} is learning {o}", "learns is_learning 学 在学"),
    _many("habit", "preference", "{s}'s habit: {o}", "habits has_habit routine 习惯"),
    _many("collects", "preference", "{s} collects {o}", "collecting 收集 收藏"),
    _many("teaches", "work", "{s} teaches {o}", "is_teaching 教"),
    _many("volunteers", "work", "{s} volunteers {o}", "volunteers_at volunteers_for"),
    _many("runs", "work", "{s} runs {o}", "founded owns_business"),
    _many("degree", "work", "{s} has a degree: {o}", "has_degree graduated_in 学位"),
    _many("studied_at", "work", "{s} studied at {o}", "graduated_from alma_mater 毕业于"),
    _many("dietary_need", "health", "{s} needs {o} food", "dietary_needs needs_food"),
    _many("has_family", "family", "{s} has {o}", "family"),
    _many("plays", "preference", "{s} plays {o}", "plays_instrument plays_game 会弹 玩"),
    _many("eats", "preference", "{s} eats {o}", "eat 吃", "does_not_eat"),
    _many(
        "does_not_eat",
        "health",
        "{s} does not eat {o}",
        "avoids_eating never_eats cannot_eat can_not_eat not_eat 不吃 不能吃 忌口",
        "eats",
    ),
    _many("drinks", "preference", "{s} drinks {o}", "drink 喝", "does_not_drink"),
    _many(
        "does_not_drink",
        "health",
        "{s} does not drink {o}",
        "never_drinks cannot_drink can_not_drink not_drink 不喝 不能喝",
        "drinks",
    ),
    _many(
        "instruction",
        "instruction",
        "{s} asked: {o}",
        "wants_answers instructions instructs standing_instruction answer_style response_style prefers_answers wants_replies wants_format always format_instruction asks_assistant 指令 要求 回答要求 回答方式 style_instruction requests_style output_format",
    ),
    _one(
        "answer_language",
        "instruction",
        "{s} wants answers in {o}",
        "language_preference preferred_language response_language reply_language reply_in answer_in wants_answers_in 回复语言 回答语言",
    ),
    _many(
        "cannot",
        "constraint",
        "{s} cannot {o}",
        "can_not is_unable_to unable_to must_not not_able_to 不能 无法 不可以",
        "can",
    ),
    _many(
        "can_only", "constraint", "{s} can only {o}", "may_only only_can is_only_able_to 只能 limited_to only_available"
    ),
    _many("does_not", "constraint", "{s} does not {o}", "will_not never_does 从不"),
    _many("can", "other", "{s} can {o}", "is_able_to able_to 能 可以", "cannot"),
    _many("must", "constraint", "{s} must {o}", "has_to needs_to requirement must_have required_to 必须 需要"),
    _one("budget", "constraint", "{s}'s budget is {o}", "has_budget budget_is spending_limit max_budget 预算"),
    _one(
        "available",
        "constraint",
        "{s} is available {o}",
        "availability is_available available_on free_on is_free travel_dates 有空 空闲时间",
    ),
    _many(
        "constraint", "constraint", "{s}'s constraint: {o}", "constraints limitation limitations has_constraint 限制"
    ),
    _many("not_available", "constraint", "{s} is {o}", "unavailable is_unavailable not_free 没空"),
    _one("deadline", "constraint", "{s}'s deadline is {o}", "due_date 截止日期 期限"),
    _many(
        "plans",
        "plan",
        "{s} plans: {o}",
        "plan plans_to planning_to is_planning_to is_going_to going_to will intends_to intends 计划 打算 准备 is_planning",
    ),
    _many(
        "goal",
        "plan",
        "{s}'s goal: {o}",
        "has_goal goals aims_to wants_to objective 目标 dream dreams ambition 梦想 理想 愿望",
    ),
    _many("project", "plan", "{s} is working on {o}", "works_on working_on is_working_on projects 项目 在做"),
    _many(
        "travels_to",
        "plan",
        "{s} travels to {o}",
        "traveling_to travelling_to is_traveling_to trip_to visiting is_visiting 旅行 去旅游",
    ),
    _many(
        "owns",
        "possession",
        "{s} has {o}",
        "has possesses own is_owner_of bought purchased got 拥有 有 买了 possession",
        "does_not_have",
    ),
    _many(
        "does_not_have",
        "possession",
        "{s} does not have {o}",
        "has_no does_not_own lacks does_not_possess 没有",
        "owns",
    ),
    _one("drives", "possession", "{s} drives {o}", "car vehicle drives_car has_car 开车 车"),
)
"""A name stands in one row only; a test says so."""
_NAMING: Final = frozenset(
    "from born_in grew_up_in home_town lives_in located_in works_at studies_at studied_at spouse partner boss colleague mother father child son daughter sister brother grandmother"
    " grandfather grandchild stepchild aunt uncle cousin niece nephew roommate neighbor classmate mentor coach teacher assistant doctor therapist friend dog cat".split()
)
LASTING: Final = frozenset(
    {"allergic_to", "intolerant_to", "condition", "blood_type", "diet", "does_not_eat", "does_not_drink"}
    | {"birth_year", "mother", "father", "child", "son", "daughter", "sister", "brother", "born_in"}
)
"""What does not wear off though its category does: forgetting it harms, or it cannot change."""
