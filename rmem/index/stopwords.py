"""Function words by language: dropped from questions and memories, and used to guess a text's language."""

from __future__ import annotations

ENGLISH = frozenset(
    """
a about above after again against all also am an and any are aren't as at be because been before being below
between both but by can can't cannot could couldn't did didn't do does doesn't doing don't down during each ever
few for from further get gets getting got had hadn't has hasn't have haven't having he he'd he'll he's her here
here's hers herself him himself his how how's i i'd i'll i'm i've if in into is isn't it it's its itself just let
let's me might more most must mustn't my myself no nor not of off on once only or other ought our ours ourselves out
over own same shall shan't she she'd she'll she's should shouldn't so some such than that that's the their theirs
them themselves then there there's these they they'd they'll they're they've this those through to too under until
up upon very was wasn't we we'd we'll we're we've were weren't what what's when when's where where's which while who
who's whom why why's will with won't would wouldn't you you'd you'll you're you've your yours yourself yourselves
""".split()
)

OTHERS: dict[str, frozenset[str]] = {
    language: frozenset(words.split())
    for language, words in {
        "german": """aber als am an auch auf aus bei bin bis bist da damit das dass daß dem den denn der des die dies
        diese diesem diesen dieser doch dort du durch ein eine einem einen einer eines er es für hat habe haben hatte
        hier ich ihm ihn ihr im in ist ja kann kein keine mein mich mir mit nach nicht noch nur oder ohne sehr sein
        seine sich sie sind so über um und uns unter vom von vor war waren was wegen wenn werden wie wir wird wo
        wurde wurden zu zum zur""",
        "french": """à au aux avec ce ces cette dans de des du elle elles en est et eu eux il ils je la le les leur
        leurs lui ma mais me même mes moi mon ne nos notre nous on ont ou où par pas pour qu que qui sa sans se ses
        son sont sur ta te tes toi ton tu un une vos votre vous été était être avoir""",
        "spanish": """a al algo como con cuando de del desde donde dónde el ella ellas ellos en entre era es esa ese
        eso esta está están este esto fue ha había han hay la las le les lo los más me mi muy nada ni no nos nosotros
        o para pero por porque que qué quién se ser si sí sin sobre son su sus también te tiene tu un una uno y ya
        yo""",
        "italian": """a ad al alla alle anche che chi ci come con cui da dal dalla degli dei del della delle di dove
        e è ed era gli ha hanno ho i il in io la le lei li lo loro lui ma mi mia mio ne nei nel nella noi non o per
        perché più quando quella quello questa questo sei si sia sono su sua sul sulla suo ti tra tu un una uno
        vi""",
        "portuguese": """a ao aos as com como da das de dela dele do dos e é ela elas ele eles em entre era essa esse
        esta está este eu foi há isso já lhe mais mas me mesmo meu minha muito na nas não nem no nos nós o onde os
        ou para pela pelo por porque quando que quem se sem ser seu seus só são sua suas também te tem um uma você
        vocês""",
        "dutch": """aan al als bij dan dat de der deze die dit doch doen door een en er ge geen had heb hebben heeft
        het hier hij hoe hun ik in is ja je kan maar me meer men met mij mijn naar niet nog nu of om omdat ons ook
        op over te tegen toch toen tot u uit van veel voor want waren was wat we wel werd wie wij worden wordt zal
        ze zich zij zijn zo zou""",
        "swedish": """alla att av blev bli den denna deras dess dessa det detta dig din ditt du där då efter ej eller
        en er ett från för ha hade han hans har henne hon honom hur här i icke inte jag ju kan man med mellan men
        mig min mitt mot mycket ni nu när någon något och om oss på samma sedan sig sin själv ska som så till under
        upp ut vad var vara vem vi vid vilken är åt över""",
        "danish": """af alle at blev blive da de dem den denne der deres det dette dig din du efter eller en end er
        et for fra ham han hans har havde hende hun hvad hvis hvor i ikke ind jeg jo kunne man mange med meget men
        mig min mit mod ned noget nogle nu når og også om op os over på sig sin skal som sådan til ud under var vi
        vil være""",
        "norwegian": """alle at av ble både da de deg dem den denne der dere det dette din du då eg ein eit eller en
        enn er et etter for fordi fra før ha hadde han hans har hennes her hun hva hvem hvor hvorfor i ikke ikkje
        inn ja jeg kan kom kun man med meg men mellom min mot nå når og også om opp oss over på så sin skal som til
        ut var ved vi vil være""",
        "finnish": """ei eivät en että hän he ja jos joka jotka kanssa kuin kun me minä mutta myös ne niin nyt ole
        olen olet oli olla on ovat se sekä sen siinä sitä tai tämä te tuo vain voi""",
        "russian": """а без бы был была были было быть в вам вас весь во вот все всё вы где да для до его ее её если
        есть ещё же за здесь и из или им их к как когда кто ли мне мы на над надо не него нее нет ни но о об он она
        они от по под при с свой себя со так также там то тот ты у уже что чтобы эта эти это этот я""",
        "turkish": """ama ben bir biz bu çok da daha de değil diye en gibi hem hep her hiç için ile ise kadar ki kim
        mı mi mu mü nasıl ne neden nerede o olan olarak sen siz şu ve veya ya""",
        "hungarian": """a az azt be csak de egy el én és ez ezt fel ha hogy hol igen is itt ki le lesz mag már meg
        mert mi mint most nagyon nem ők ott ő pedig s sem te ti úgy vagy van vannak volt""",
        "romanian": """a acest această ai al ale am ar are as au ca care ce cu cum da dar de din după e ea ei el ele
        este eu fi fost în la le lui mai ne noi nu o pe pentru prin sa să se si și sunt sau tu un una unde va
        vă voi""",
        "greek": """αλλά αν από αυτή αυτό αυτός για δεν είμαι είναι ένα ένας εγώ η ή θα και κατά με μας μου μη να ο
        οι όταν ότι που πως πού σας σε στη στην στο στον τα τη την της τι τις το τον του τους των""",
    }.items()
}

# Which languages a function word speaks for, so that one pass over a text's words is a vote.
VOTES: dict[str, tuple[str, ...]] = {}
for _language, _words in (("english", ENGLISH), *OTHERS.items()):
    for _word in _words:
        VOTES[_word] = (*VOTES.get(_word, ()), _language)
