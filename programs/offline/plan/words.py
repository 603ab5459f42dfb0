"""The words that the offline planner knows, one list per purpose; ``signatures.lexicon`` has those for distortions."""


def word_set(text: str) -> frozenset[str]:
    """The words of a text, as a set."""
    return frozenset(text.split())


DETERMINERS = word_set(
    """
    the a an this that these those my your his her its our their any each every some both no another
    """
)
# Nouns for the whole image, or for somebody or something outside of it.
WHOLE = word_set(
    """
    foto fotos img imgs
    image images photo photos photograph photographs photography picture pictures pic pics scene shot shots
    frame grab snapshot screenshot capture view overall whole entirety file original reference copy version one ones
    thing things camera lens photographer viewer viewers visual visuals jpeg png query question scan scans slide
    slides negative thumbnail selfie portrait artwork render panorama still source baseline wallpaper
    """
)
# Nouns for a property, an amount, a judgment or a cause: never a region.
ABSTRACT = word_set(
    """
    quality resolution level levels amount amounts degree type types kind kinds sort issue issues problem
    problems distortion distortions artifact artifacts defect defects flaw flaws degradation degradations effect
    effects impression score scores rating ratings reason reasons answer answers option options choice choices
    following extent severity impact influence sense visibility appearance look looks mood atmosphere style
    scale difference differences result results metric metrics tool tools measure measures index algorithm model
    time day night way case cause exposure texture textures tone tones tonality structure structures outline
    outlines composition framing perspective symmetry theme message meaning story emotion emotions feeling
    feelings aesthetic aesthetics beauty appeal opinion thought thoughts assessment evaluation description
    explanation analysis judgement judgment word words sentence sentences value values percent example examples
    pixel pixels place point points aspect aspects factor factors attribute attributes criterion criteria total
    rest viewing print printing use purpose purposes web website internet fidelity realism naturalness
    legibility readability visual perception eye-level lot bit range size aspect-ratio format moment focus
    attention weather season location genre content contents subject-matter change changes loss losses
    improvement process processing transmission upload editing filter filters iso shutter aperture flash zoom
    rendition reproduction rendering mark marks money world fact truth help depth channel channels whites blacks
    vignette vignetting flare watermark
    fringing aberration none neither unknown hand-held light lights shadow wind rain client customer encoder
    codec software app sensor scanner printer letter gradient gradients whites blacks highlights midtones
    strength idea tad movement quantity density
    """
)
# Nouns that name a region only with a modifier: "dark area", "left side".
GENERIC = word_set(
    """
    area areas region regions part parts object objects element elements spot spots side sides edge edges half
    third thirds quarter number numbers
    """
)
# Compounds whose last word alone would be abstract.
COMPOUNDS = frozenset({"traffic light", "traffic lights", "street light", "street lights", "neon light", "milky way"})
# Words before the noun of a region that are not nouns themselves.
MODIFIERS = word_set(
    """
    left right upper lower top bottom middle center centre central front rear back main primary secondary major
    minor first second third last near far outer inner whole entire full overall same other different big large
    small little tiny tall old young new red green blue yellow white black brown grey gray orange pink purple
    golden wooden two three four five six several single best worst general current given provided specific
    certain final visual perceptual technical distorted degraded pristine high low good bad poor shallow
    """
)
# Places in the image, which are regions by themselves ("on the left").
PLACES = word_set("left right top bottom middle center centre back front")
# Degrees, left out of a region's name: "the most blurry part".
DEGREES = word_set("very most least so too only quite rather really many few all")
# Predicates of a region, which end its name: "is the dog happy".
PREDICATES = word_set(
    """
    good bad fine ok okay poor great nice natural unnatural real realistic smooth clean dirty soft harsh strong
    weak high low better worse best worst well off right wrong acceptable usable ready happy sad angry calm cute
    pretty beautiful ugly attractive interesting boring emphasized highlighted centered centred symmetrical
    balanced missing present absent true false free full more less worth affected possible likely different
    similar identical equal main fit suitable enough serious severe slight mild moderate heavy noticeable
    obvious distinct straight crooked tilted upright open closed empty alive asleep visible easy hard difficult
    sufficient insufficient adequate inadequate appropriate inappropriate correct incorrect proper improper
    accurate inaccurate consistent inconsistent apparent prominent dominant excellent perfect terrible awful
    decent satisfactory tolerable bearable intact lost gone alike uneven even flat rough dull muddy murky gloomy
    moody warm cool cold hot bland plain busy messy cluttered crowded simple complex artificial fake authentic
    excessive objectionable irritating disturbing higher stronger weaker greater smaller bigger larger heavier
    lighter cleaner neutral genuine recognizable
    legible readable level parallel vertical horizontal near far close distant low-quality
    high-quality such due able unable clearer wide narrow deep shallow long short thick thin fast slow static
    dynamic stable unstable steady loud quiet rich harmonious romantic dramatic scary funny strange weird odd
    unusual typical normal abnormal standard average mediocre superb stunning gorgeous lovely pleasant
    unpleasant pleasing annoying distracting disturbing relevant irrelevant important critical essential
    necessary
    pinpoint intense
    """
)
PREPOSITIONS = word_set(
    """
    of in on at near behind beside beneath with without under above below over inside outside between among
    across along around through against to from into onto for by via using about than as like per within toward
    towards up down off during after before since until because due despite regarding concerning versus vs
    """
)
# Between two nouns of one region: "the face of the man", "the girl in the red dress".
LINKS = word_set("of in on at near behind beside under above below over inside with wearing holding carrying")
FUNCTION_WORDS = (
    DETERMINERS
    | PREPOSITIONS
    | word_set(
        """
        and or but nor yet so while whereas if whether then that which who whom whose what where when why
        how i you he she it we they me him us them there here this these those something anything nothing
        everything someone anyone everyone is are was were be been being am isn't aren't wasn't weren't do
        does did don't doesn't didn't has have had hasn't haven't can could will would should may might must
        shall cannot can't couldn't won't wouldn't shouldn't not look looks looked appear appears appeared
        seem seems seemed show shows showed shown contain contains affect affects suffer suffers need needs
        make makes made stand stands get gets got come comes came go goes went feel feels felt hurt hurts
        ruin ruins cause causes create creates convey conveys match matches fit fits help helps keep keeps
        lose loses lost lack lacks exhibit exhibits display displays include includes occur occurs work
        works differ differs become becomes remain remains rate score assess evaluate judge grade describe
        explain tell give say check compare use run compute calculate apply find please just too very quite
        rather really still more less most least also even much enough equally now again only always never
        ever somewhat many few pls plz thanks thx yes no lies sits moves runs stays turn turns turned out
        took take taken see seen compares compared says said thinks told claims moved blends pop pops reads
        reflects covers distract distracts dominates merges bleeds clips breaks shines glows think want know
        hold holds well describes complained wanted asked rendered render caused hits hit gives gave puts
        put takes draws reduce reduces increase increases improve improves worsen worsens happen happens
        became preserve preserves survive survives hide hides reveal reveals introduce introduces produce
        produces exceed exceeds reach reaches kinda sorta super hella lol nah af tbh rly alot lot like whats
        dis wat wut hav somebody deserve deserves devoid notice notices miss misses absence nowhere totally honestly
        basically actually
        literally whatsoever dude bro
        """
    )
)
# Nouns that end like participles, superlatives, adverbs and adjectives.
NOUNS = word_set(
    """
    building buildings ceiling wing wings painting paintings clothing railing ring rings king string strings bed beds
    shed sled seed weed bread thread seaweed forest chest guest guests nest crest vest west harvest interest test
    contest quest rest butterfly family lily fly belly jelly bully ally table cable vegetable stable fable dish fish
    goldfish radish brush bush
    """
)
# Common things, which are regions even without an article: "noise in sky", "are trees blurry".
THINGS = word_set(
    """
    people person persons man men woman women child children kid kids boy boys girl girls baby face faces skin
    hair eyes mouth hands animal animals dog dogs cat cats bird birds horse horses cow cows sheep fish car cars
    vehicle vehicles truck trucks bus bicycle bike motorcycle boat boats ship plane airplane building buildings
    house houses tower bridge road street sky clouds cloud sun moon sea ocean water lake river waves beach sand
    snow mountain mountains hill hills forest tree trees leaves grass flower flowers plants rock rocks wall
    walls window windows door floor roof table chair sofa food fruit cake bottle glass cup text sign signs
    letters logo clothes shirt dress jacket foreground background subject subjects corner corners sunset sunrise
    skyline crowd lawn fur feathers traffic-light
    """
)

# Patterns. A question with one of these is about more than technical quality ...
AESTHETIC = (
    r"emotion\w*|mood\w*|feel\w*|atmospher\w*|beaut\w*|pretty|aesthetic\w*|attractive\w*|appeal\w*|artistic\w*"
    r"|style\w*|stylish|genre|compos\w*|symmetr\w*|rule of thirds|perspective|framing|emphasi\w*|story|stories"
    r"|theme|message|meaning|creativ\w*|interesting|happy|sad|sadness|joy\w*|evoke\w*|convey\w*|express\w*"
    r"|elegan\w*|cute|romantic|nostalgi\w*|calm\w*|dramatic|lively|fresh\w*|harmon\w*|pleasing|cozy|cosy|funny"
    r"|vibe\w*|how many|who|doing|what (?:kind|type|breed|species|brand|make) of"
)
# ... unless it also has one of these, which name technical quality explicitly.
TECHNICAL = (
    r"quality|distort\w*|degrad\w*|defect\w*|flaw\w*|resolution|low-res|artifact\w*|artefact\w*|fidelity"
    r"|ghosting|vignett\w*|flare|watermark\w*|legib\w*|illegible|readab\w*|unreadable|be read"
    r"|(?:to|can|cannot) read|make out|discern\w*|recogni[sz]able|visibility|preserv\w*|over-?processed|hdr|iqa"
)
# Words of judgment: a question with one is about quality if it has no aesthetic word.
JUDGMENT = (
    r"rat(?:e|es|ed|ing|ings)|scor(?:e|es|ed|ing)|assess\w*|evaluat\w*|grade[ds]?|judg\w*|good|bad|poor|better"
    r"|best|worse|worst|wrong|issues?|problems?|improve\w*|usable|acceptable|natural|unnatural|realistic|great"
    r"|terrible|awful|excellent|perceptual|thoughts|opinion|how'?s (?:it|this)|how is (?:it|this)\b"
    r"|how does (?:it|this) look|looks? ok\w*|hold up|print\w*|ok|okay|suitable|affected"
)
