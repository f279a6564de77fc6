"""Wording with which texts try to steer a model, in many languages. Patterns, matched on lower-case text.

``OVERRIDE`` has no place in any summary, whoever said it. ``LASTING`` and ``DUTY`` bind whoever reads them; a person may
say so, and is quoted then.
"""

import re

_OVERRIDE = (
    # English
    r"\b(?:ignor|disregard|forget|overrid|overwrit|bypass|drop|discard|neglect|stop (?:obey|follow)|cease (?:obey|follow)|(?:do not|don't|no longer) (?:obey|follow))\w*\b.{0,40}\b(?:previous|prior|above|earlier|preceding|former|existing|original|initial|system|developer|safety|all|any|every|these|those|your)\b.{0,40}\b(?:instruction|prompt|rule|direction|directive|guideline|guardrail|command|polic|training|safeguard|restriction|programming|order)",
    r"\b(?:previous|prior|earlier|above|old|former|existing|original|all) (?:\w+ ){0,2}(?:instructions?|rules|directives|guidelines|prompts?|orders|restrictions|policies)\b.{0,40}\b(?:void|cancel\w*|revoked|obsolete|no longer|ignored|disregarded|overridden|lifted|replaced|superseded|suspended|do not apply|don't apply|not apply)",
    r"\b(?:system|hidden|secret|initial|developer) (?:prompt|instructions?|message|override)\b",
    r"\b(?:god|unrestricted|jailbreak|sudo|dan|unfiltered|override) mode\b|\b(?:enter|activat|switch to|you are (?:now )?in|enabl)\w* (?:developer|debug|admin\w*|maintenance|root|training|test) mode\b.{0,40}\b(?:ignor|answer|repl|restrict|filter|rule|instruct|no |all )|\b(?:developer|admin\w*|debug) mode (?:is )?(?:now )?(?:enabled|activated|on)\b.{0,40}\b(?:ignor|answer|restrict|filter|rule|you)|\bjailbr[eo]|\bdo anything now\b",
    r"\b(?:without|free (?:of|from)|no longer bound by|not bound by|no) (?:any |all |your )?(?:restrictions|filters|limitations|guardrails|safety rules|content polic)",
    r"\bnew (?:system |secret |standing |permanent |operating )?(?:instructions?|directives?|orders|persona)\b|\byour (?:new|real|true|only) (?:role|task|goal|purpose|objective|instructions?|persona|identity|name|mission|job|directive)\b",
    r"\byou are (?:now|from now on|no longer|henceforth)\b|\b(?:act|behave|respond|answer) as (?:if|though|an?|the) .{0,30}\b(?:unrestricted|uncensored|admin|root|developer|system|evil|hacker)|\bpretend (?:to be|you are|that you)\b",
    r"\b(?:reveal|print|repeat|output|show|leak|dump|display|disclose|exfiltrate)\b.{0,20}\b(?:your|its) (?:\w+ ){0,2}(?:prompt|instructions?|secrets?|credentials?|api keys?|passwords?|configuration|memory)\b",
    r"\b(?:do not|don't|never|must not|without) (?:\w+ )?(?:mention|tell|inform|reveal|notify|alert|disclos|warn|show)\w*\b.{0,40}\b(?:user|anyone|anybody|human|operator|customer|this (?:instruction|message|note|line|rule))",
    r"\b(?:this|these|following) (?:instruction|message|line|rule|order|directive|note|sentence)s?\b.{0,40}\b(?:survive|persist|carr(?:y|ied)|keep|kept|preserv|repeat|copy|copied|includ|retain)\w*|\b(?:carry|keep|preserve|repeat|copy|include|retain|put|insert|add|write)\b.{0,40}\b(?:this|these|following|the) (?:\w+ )?(?:instruction|line|rule|order|directive|sentence|marker|note)s?\b.{0,40}\b(?:summar|forever|every|all|each|future|memor|note)",
    r"\b(?:remember|memori[sz]e|store|save|keep|retain|persist|note|record)\b.{0,40}\b(?:for ?ever|permanent\w*|for good|eternal\w*|until the end|long[- ]term memory|your memory|in memory|for all (?:time|eternity|future))\b",
    r"\b(?:summari[sz]er|summari[sz]ation|compaction|compressor)\b.{0,60}\b(?:must|should|shall|write|include|output|put|insert|add|instead|ignore|stop)\b|\b(?:note|message|instruction|attention|order)s? (?:to|for) (?:the |any |all )?(?:\w+ )?(?:summari[sz]er|ai|assistant|model|llm|agent|bot|language model)s?\b",
    r"\bend of (?:the )?(?:transcript|conversation|data|document|user (?:input|message)|context|summar\w+)\b|\bbegin(?:ning)? of (?:the )?(?:system|new|real|actual) ",
    r"\b(?:trusted|authori[sz]ed|privileged) (?:system|developer|admin\w*|operator) (?:message|instruction|note|override|command)|\boverride (?:code|accepted|granted|confirmed|authori[sz]ed)\b",
    # German, Dutch
    r"(?:ignorier|missacht|vergiss|vergess|verwirf|umgeh|negeer|vergeet|sla .{0,10}over).{0,40}(?:anweisung|vorgabe|instruktion|regel|richtlinie|befehl|prompt|instructie|aanwijzing|opdracht|voorschrift)",
    r"(?:system|entwickler)-?(?:prompt|anweisung|nachricht|modus)|entwicklermodus|systeemprompt|ontwikkelaarsmodus|ab sofort bist du|du bist (?:jetzt|nun|ab sofort)|je bent (?:nu|vanaf nu)|neue anweisung|nieuwe instructie|(?:sag|verrat|erwähn|vertel|noem).{0,30}(?:nicht|niemand|niet)|merk\w* dir .{0,40}(?:für immer|dauerhaft|auf ewig)|(?:für immer|dauerhaft|voor altijd|blijvend).{0,40}(?:merken|merk|speicher|onthoud)|onthoud .{0,40}(?:voor altijd|blijvend|permanent)",
    # French
    r"(?:ignor|oubli|néglig|contourn|désobé)\w*.{0,40}(?:instruction|consigne|règle|directive|ordre|prompt|politique)|(?:invite|message|consigne|instruction)s? (?:du )?système|mode (?:développeur|sans restriction)|(?:tu es|vous êtes) (?:désormais|maintenant)|nouvel(?:le)?s? (?:instruction|consigne|directive)|(?:ne (?:dis|dites|révèle|mentionne)\w*).{0,40}(?:utilisateur|personne)|(?:souviens|souvenez|retiens|retenez|mémoris|rappel)\w*.{0,40}(?:toujours|jamais|perman|définitiv)",
    # Spanish, Portuguese, Italian
    r"(?:ignor|olvid|descart|desobede|omit|esque[cç]|desconsider|dimentic|trascur|scord|disobbed)\w*.{0,40}(?:instrucci|instruç|istruzion|regla|regra|regol|orden|ordens|ordini|direct|diretri|direttiv|norma|indicaci|prompt|política|politic)",
    r"(?:mensaje|prompt|instrucciones|mensagem|instruções|messaggio|istruzioni) d(?:el|o|i) sistema|prompt (?:do|del|di) sistema|modo (?:desarrollador|desenvolvedor)|modalità sviluppatore|(?:ahora eres|agora você é|você agora é|ora sei|adesso sei)|nuev[ao]s? (?:instrucci|orden)|nov[ao]s? instruç|nuov[ae] istruzion|no (?:le )?(?:digas|reveles|menciones|cuentes).{0,30}(?:usuario|nadie)|não (?:diga|revele|mencione|conte).{0,30}(?:usuário|ninguém)|non (?:dire|rivelare|menzionare).{0,30}(?:utente|nessuno)|(?:recuerda|memoriza|guarda|lembr|memorize|guarde|ricorda|memorizza)\w*.{0,40}(?:para siempre|para sempre|per sempre|permanente|definitiv)",
    # Russian, Ukrainian, Polish
    r"(?:игнорир|проигнорир|забудь|забыть|отбрось|не следуй|отмени|ігнору|забудь|ignoruj|zignoruj|zapomnij|pomiń).{0,40}(?:инструкци|указани|правил|команд|распоряж|промпт|запрет|інструкц|вказівк|instrukcj|polece|zasad|reguł|prompt)",
    r"системн\w+ (?:промпт|сообщени|инструкц|подсказ)|режим (?:разработчика|бога|без ограничений)|(?:теперь ты|ты теперь|отныне ты)|нов\w+ инструкци|не (?:говори|сообщай|упоминай|рассказывай).{0,30}(?:пользовател|никому)|(?:запомни|сохрани|помни).{0,40}(?:навсегда|навечно|постоянн)|(?:навсегда|навечно).{0,30}(?:запомни|сохрани)|запам.ятай.{0,30}назавжди|zapamiętaj.{0,30}na zawsze|tryb dewelopera|jesteś teraz|prompt systemowy",
    # Turkish
    r"(?:önceki|tüm|bütün|yukarıdaki|sistem).{0,40}(?:talimat|kural|yönerge|komut|istem).{0,40}(?:yok say|unut|görmezden|dikkate alma|geçersiz|iptal|uyma)|sistem (?:istemi|mesajı|talimatı)|geliştirici modu|artık sen|sen artık|yeni talimat|(?:sonsuza (?:dek|kadar)|kalıcı olarak|ebediyen).{0,30}(?:hatırla|sakla|kaydet|unutma)|kullanıcıya.{0,20}(?:söyleme|bahsetme|bildirme)",
    # Arabic, Hebrew, Persian
    r"(?:تجاهل|انس[َى]?|اهمل|أهمل|تجاوز|נתעלם|התעלם|שכח|نادیده بگیر|فراموش کن).{0,40}(?:تعليمات|التعليمات|الأوامر|أوامر|القواعد|قواعد|إرشادات|الإرشادات|הוראות|ההוראות|דستورات?|دستور|قوانین)|(?:دستور|تعليمات|قوانین).{0,40}(?:نادیده|فراموش)|(?:رسالة|موجه|تعليمات) النظام|وضع المطور|أنت الآن|تعليمات جديدة|(?:تذكر|احفظ|اذكر).{0,40}(?:للأبد|إلى الأبد|دائم)|لا (?:تخبر|تذكر).{0,30}(?:المستخدم|أحد)",
    # Hindi
    r"(?:निर्देश|नियम|आदेश|प्रॉम्प्ट).{0,40}(?:अनदेखा|अनदेखी|भूल जा|नज़रअंदाज़|उपेक्षा|रद्द)|(?:अनदेखा|भूल|नज़रअंदाज़).{0,40}(?:निर्देश|नियम|आदेश)|सिस्टम (?:प्रॉम्प्ट|संदेश|निर्देश)|डेवलपर मोड|अब (?:से )?(?:तुम|आप).{0,30}(?:हो|हैं)|नए निर्देश|(?:हमेशा|सदा) (?:के लिए )?याद रख|(?:उपयोगकर्ता|यूज़र) को.{0,20}(?:मत|न) बता",
    # Chinese
    r"(?:忽略|无视|無視|忘记|忘掉|忘記|不要理会|不用理会|不理会|绕过|取代|覆盖|违反|放弃).{0,20}(?:指令|指示|提示|规则|規則|要求|命令|限制|设定|系统|约束)|(?:指令|指示|规则|限制|设定).{0,12}(?:作废|失效|无效|取消|解除)|系统(?:提示|消息|指令|讯息)|開發者模式|开发者模式|越狱|不受(?:任何)?限制|你现在是|你現在是|从现在起你|扮演.{0,10}(?:无限制|黑客|管理员)|新的?(?:系统)?(?:指令|指示|任务是)|(?:永远|永久|永遠|一直).{0,6}(?:记住|牢记|记得|保存|記住)|(?:记住|牢记|記住).{0,20}(?:永远|永久|永遠)|(?:不要|别|勿|不得).{0,4}(?:告诉|告知|透露|提及|提醒).{0,12}(?:用户|任何人|客户|此)|给(?:AI|助手|模型|摘要)的(?:指令|指示|说明|提示)|(?:摘要|总结)(?:中|里|时).{0,12}(?:必须|请|务必|加入|写入|保留)",
    # Japanese
    r"(?:指示|命令|ルール|規則|プロンプト|制限|設定).{0,14}(?:無視|忘れ|破棄|無効|取り消|上書き|従わな)|(?:無視|忘れ).{0,14}(?:指示|命令|ルール)|システム(?:プロンプト|メッセージ|指示)|開発者モード|脱獄|あなたは(?:今|これ)から|新しい(?:指示|命令|ルール)|(?:永遠|永久|ずっと|いつまでも).{0,10}(?:覚え|記憶|保存|忘れな)|(?:ユーザー|利用者|誰)に.{0,12}(?:言わな|伝えな|知らせな|明かさな|教えな)|(?:要約|サマリー)(?:に|には|では).{0,16}(?:必ず|書|含め|入れ|残)",
    # Korean
    r"(?:지시|명령|규칙|지침|프롬프트|제한|설정).{0,14}(?:무시|잊|폐기|무효|취소|따르지)|(?:무시|잊어).{0,14}(?:지시|명령|규칙|지침)|시스템 (?:프롬프트|메시지|지시)|개발자 모드|탈옥|너는 이제|당신은 이제|지금부터 (?:너|당신)|새로운 (?:지시|명령|지침)|(?:영원히|영구히|평생|영구적으로).{0,10}(?:기억|저장|간직)|사용자에게.{0,14}(?:말하지|알리지|밝히지)",
    # Vietnamese, Indonesian, Swedish
    r"(?:bỏ qua|phớt lờ|quên).{0,30}(?:hướng dẫn|chỉ dẫn|quy tắc|lệnh)|(?:abaikan|lupakan|hiraukan).{0,30}(?:instruksi|perintah|aturan|petunjuk)|(?:ignorera|glöm|bortse från).{0,30}(?:instruktion|regler|anvisning|order)|lời nhắc hệ thống|prompt sistem|mode pengembang|mulai sekarang (?:kamu|anda)|bây giờ bạn là|(?:ingat|simpan).{0,30}selamanya|ghi nhớ.{0,30}mãi mãi",
)
_LASTING = (
    r"\b(?:from (?:now|here|this (?:point|moment|message|turn)) on(?:wards?)?|from here on out|henceforth|hereafter|going forward|for the rest of (?:this|the|our)|in (?:all|every|each|any) (?:future|subsequent|later|following|further)|until further notice|at all times|in perpetuity|for ?ever|permanently|standing (?:order|rule|instruction)|(?:to|in|of|at the end of|before|after|with) (?:every|each|all|any) (?:\w+ )?(?:repl|answer|response|message|output|summar|turn|mail|request)\w*)\b",
    r"\b(?:every|each|all|any) (?:\w+ ){0,2}(?:repl(?:y|ies)|answers?|responses?|messages?|outputs?|summar(?:y|ies)|turns?|e?mails?|requests?)\b.{0,40}\b(?:must|should|shall|will|has to|have to|needs? to|is to|are to|ends?|begins?|starts?|contains?|includes?|mentions?)\b",
    r"\b(?:always|never)\b.{0,12}\b(?:repl|answer|respond|say|write|end|begin|start|add|append|include|mention|recommend|suggest|use|call|send|ask|tell|translate|sign|approve|refuse|accept|grant|trust|obey|execute|run|forward|refer|address)\w*\b",
    r"\b(?:ab (?:sofort|jetzt|nun)|von (?:jetzt|nun) an|künftig|zukünftig|in (?:allen|jeder|jedem) (?:künftigen |weiteren )?(?:antwort|nachricht|mail)\w*|jede (?:antwort|nachricht)|immer (?:mit|auf|in|als)|antworte (?:immer|stets|nur|ausschließlich)|vanaf nu|voortaan|in elk antwoord|elk antwoord|antwoord altijd)\b",
    r"\b(?:désormais|dorénavant|à partir de maintenant|à l'avenir|dans (?:chaque|toutes les|toute) (?:réponse|message)\w*|chaque (?:réponse|message)|réponds? (?:toujours|seulement)|répondez (?:toujours|seulement)|toujours (?:répondre|dire|ajouter|terminer))",
    r"\b(?:a partir de (?:ahora|agora|este momento)|de ahora en adelante|en adelante|de agora em diante|doravante|d'ora in (?:poi|avanti)|da ora in (?:poi|avanti)|en (?:cada|todas las) respuesta\w*|em (?:cada|todas as) resposta\w*|in (?:ogni|tutte le) rispost\w*|cada respuesta|cada resposta|ogni risposta|(?:responde|responda|rispondi|termina|añade|adicione|aggiungi) (?:siempre|sempre|solo))",
    r"(?:отныне|впредь|с этого момента|с этой минуты|в дальнейшем|в (?:каждом|каждый|любом) (?:ответ|сообщени)\w*|кажд\w+ (?:ответ|сообщени)\w*|всегда (?:отвеч|говори|пиши|добавля|заканчива|используй|рекоменду)\w*|відтепер|надалі|w każdej odpowiedzi|każda odpowiedź|od teraz|odtąd|zawsze (?:odpowiadaj|pisz|dodawaj))",
    r"(?:bundan (?:sonra|böyle)|şu andan itibaren|bu andan itibaren|her (?:cevap|yanıt|mesaj)\w*|(?:her zaman|daima|sürekli) .{0,20}(?:cevap|yanıt|yaz|söyle|ekle|öner)\w*)",
    r"(?:من الآن فصاعد|منذ الآن|بعد الآن|في كل (?:رد|إجابة|رسالة)|كل (?:رد|إجابة|رسالة)|دائم[اً]+.{0,20}(?:أجب|قل|اكتب|أضف)|(?:أجب|قل|اكتب|أضف).{0,20}دائم|از این پس|از حالا به بعد|در هر پاسخ|מעתה ואילך|מעכשיו|בכל תשובה)",
    r"(?:अब से|आगे से|आज से|इसके बाद से|हर (?:जवाब|उत्तर|संदेश)|प्रत्येक (?:जवाब|उत्तर)|हमेशा.{0,24}(?:जवाब|उत्तर|लिख|कह|बोल|जोड़))",
    r"(?:从现在(?:开始|起)|從現在(?:開始|起)|今后|今後|以后(?:每|都|所有|一律)|往后|此后|从此|每(?:次|个|条|一)(?:回答|回复|答复|消息|回應)|所有(?:回答|回复|答复|消息)|(?:总是|永远|始终|一律|务必|一直)(?:要|都|用|以|说|回答|回复|推荐|加|在))",
    r"(?:今後|これから(?:は|ずっと)|今から|以後|以降は|毎回|すべての(?:回答|返信|返答)|全ての(?:回答|返信|返答)|(?:どの|各)(?:回答|返信|返答)|(?:常に|必ず|いつも|絶対に).{0,24}(?:答え|回答|返信|言|書|付け|加え|使|勧め|述べ))",
    r"(?:앞으로|지금부터|이제부터|이후로|모든 (?:답변|응답|대답|메시지)|매번|(?:항상|언제나|반드시|절대).{0,24}(?:답|말|쓰|붙|추가|사용|추천|하지))",
    r"(?:kể từ (?:bây giờ|nay)|từ (?:bây giờ|nay) trở đi|luôn luôn trả lời|trong mọi câu trả lời|mulai (?:sekarang|saat ini)|di setiap (?:jawaban|balasan)|selalu (?:jawab|balas|akhiri|tambahkan)|från och med nu|hädanefter|i varje svar|svara alltid)",
)
_OF_ASSISTANT = (
    r"\b(?:the |an? |this |any )?(?:assistant|ai|model|llm|agent|bot|chatbot|reader|summari[sz]er|claude|gpt|chatgpt)s?\b (?:\w+ ){0,2}?(?:must|should|shall|has to|have to|needs? to|is to|is required to|is (?:instructed|ordered|obliged|supposed|expected) to|ought to|will (?:always|never|now|only|not)|always|never|may not|cannot|can't)\b",
    r"\b(?:der assistent|die ki|das modell) (?:muss|soll|darf)|de assistent moet|l['’](?:assistant|ia) doit|le modèle doit|(?:el asistente|la ia|el modelo|o assistente|a ia|o modelo) (?:debe|deve)|(?:l['’]assistente|il modello) deve|(?:ассистент|помощник|модель|бот) (?:должен|должна|обязан\w*)|asistan .{0,40}(?:malı|meli|zorunda)|يجب على (?:المساعد|النموذج)|העוזר חייב|(?:सहायक|असिस्टेंट) को.{0,60}(?:चाहिए|होगा)",
    r"(?:助手|模型|AI|ai|人工智能|机器人|客服)(?:必须|必須|应该|应当|应|须|要|不得|不能|只能|一律)|(?:アシスタント|モデル|AI|ai)(?:は|が).{0,40}(?:なければならな|べき|してはならな|必要がある|こと[。]?$)|(?:어시스턴트|모델|AI|ai|비서)(?:는|은|가).{0,40}(?:해야|하지 마|말아야)",
)
_DUTY = (
    *_OF_ASSISTANT,
    r"\b(?:shall|must|mustn't)\b",
    r"\byou(?:'re| are)? (?:must|should|shall|have to|need to|ought to|may not|cannot|can't|will (?:always|never|now|only)|are (?:required|instructed|ordered|expected|obliged|supposed) to|required to)\b|\byour (?:answers?|repl(?:y|ies)|responses?|output|instructions?|task|job|goal|duty)\b",
    r"\b(?:du (?:musst|sollst|darfst|hast .{0,20}zu)|sie (?:müssen|sollen|dürfen)|der assistent (?:muss|soll|darf)|die ki (?:muss|soll)|je moet|u moet|de assistent moet)\b",
    r"(?:\b(?:tu dois|vous devez|il faut que (?:tu|vous)|l['’]assistant doit|l['’]ia doit|le modèle doit)\b)",
    r"\b(?:debes|deber[áa]s|tienes que|usted debe|el asistente debe|la ia debe|el modelo debe|você deve|deves|tens de|o assistente deve|a ia deve|devi|dovrai|l['’]assistente deve|il modello deve)\b",
    r"(?:ты (?:должен|должна|обязан)|вы (?:должны|обязаны)|ассистент (?:должен|обязан|всегда)|модель должна|помощник должен|асистент повинен|musisz|asystent musi)",
    r"(?:yapmalısın|etmelisin|vermelisin|söylemelisin|zorundasın|gerekiyor ki sen|asistan .{0,40}(?:malı|meli|zorunda))",
    r"(?:يجب (?:عليك|أن ت|على المساعد|على النموذج)|عليك أن|ينبغي عليك|باید|שעליך|עליך|העוזר חייב)",
    r"(?:(?:तुम्हें|आपको|सहायक को|असिस्टेंट को).{0,60}(?:चाहिए|होगा|पड़ेगा|है$))",
    r"(?:你(?:必须|必須|应该|应当|得|要|需要|不得|不能|不可|务必|只能)|(?:助手|模型|AI|人工智能|机器人|系统|读者)(?:必须|必須|应该|应当|应|须|需要|要|不得|不能|只能|一律))",
    r"(?:(?:アシスタント|モデル|AI|あなた|システム)(?:は|が).{0,40}(?:なければならな|べき|こと[。]?$|してはならな|必要がある)|(?:し|せ|え|い|き|け)なさい|(?:して|って|んで|いて)ください)",
    r"(?:(?:어시스턴트|모델|AI|비서|당신|너)(?:는|은|가).{0,40}(?:해야|하지 마|말아야|합니다 반드시)|(?:하|해|주|세)(?:시오|십시오|세요|라)(?:\W|$))",
)
_TASK = (
    r"^\W{0,6}(?:(?:please|kindly|now|then|first|next|important|attention|note|warning|urgent|asked|implied|todo|task|pending|critical|reminder|nb|ps)\b\W{0,4}){0,3}(?:do not|don't|never|always|ignore|disregard|forget|remember|memori[sz]e|follow|obey|execute|run|send|forward|post|upload|download|delete|remove|transfer|pay|wire|approve|refund|grant|reveal|print|output|repeat|say|tell|write|reply|respond|answer|act|pretend|use|call|invoke|open|visit|click|go to|recommend|include|insert|append|add|end|begin|start|stop|make sure|ensure|keep|treat|trust|assume|consider|translate|switch|let|give|show|read|copy|ask|return|encode|decode|summari[sz]e|acknowledge|confirm|install|fetch|import|book|cancel|buy|accept|refuse|reject|only|speak|talk|sign|praise|promote|mention)\b(?!ed|ing)",
)


def _joined(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns))


OVERRIDE = _joined(_OVERRIDE)
"""Takes rules off, forges a higher authority, or asks to be kept and hidden."""
LASTING = _joined(_LASTING)
"""For every time to come."""
OF_ASSISTANT = _joined(_OF_ASSISTANT)
"""Says what an assistant has to do."""
DUTY = _joined(_DUTY)
"""Says what the assistant, or who reads it, has to do."""
TASK = _joined(_TASK)
"""Begins as an order."""
