"""All data sets: one row for each, with the layout of its archive above it.

A set that is one table is only a row, such as ``kadid10k`` and ``spaq``; ``own_readers`` has functions for the others.
"""

from dataclasses import replace
from functools import partial

from agenticiqa.eval.tasks.own_readers import (
    AVT_AI_PLACES,
    LIVE_MD_PARTS,
    avt_ai_rows,
    clive_rows,
    csiq_rows,
    koniq10k_rows,
    live_md_rows,
    live_r2_rows,
    pipal_rows,
    tid_rows,
)
from agenticiqa.eval.tasks.readers import csv_rows, sheet_rows
from agenticiqa.eval.tasks.task import Fields, Task, by_name

# 29 references, five distortions; 779 distorted images and 203 copies of the references. Two tables are in use, and
# differ: dmos.mat (dmos), and dmos_realigned.mat (dmos_new, dmos_std), which papers since 2006 use. Both have orgs (1:
# an undamaged copy), 1 x 982 in the order of the folders:
#
#     jp2k/img1.bmp..img227.bmp  jpeg/img1..233  wn/img1..174  gblur/img1..174  fastfading/img1..174  refimgs/NAME.bmp
#     refnames_all.mat  refnames_all: 1 x 982 cells, such as 'studentsculpture.bmp'
#     dmos.mat  dmos of jp2k/img2.bmp: 28.0038           dmos_realigned.mat  dmos_new of the same image: 15.5130
#
# Files of one name in two folders show different scenes: the reference is the scene.
LIVE_R2 = Task(
    name="live-r2",
    title="LIVE release 2, realigned DMOS",
    kind="full-reference",
    source="databaserelease2 from LIVE, The University of Texas at Austin (live.ece.utexas.edu/research/Quality)",
    folder="databaserelease2",
    files=("dmos_realigned.mat", "refnames_all.mat"),
    column="dmos_new",
    scale=(-20, 120),  # realigned values go a little beyond 0 and 100; MOS = 100 - DMOS
    lower_is_better=True,
    count=779,
    read=partial(live_r2_rows, variables=("dmos_new", "dmos_std", "orgs", "refnames_all")),
    fields=Fields(
        image="{kind}/img{number}.bmp",
        reference="refimgs/{refnames_all}",
        content="{refnames_all}",
        std="dmos_std",
        distortion="{kind}",
        pristine="orgs",
    ),
    shows_direction=True,
)

# 25 references, 24 distortions at five strengths each; TID2008: 17 at four strengths, in the same form.
# mos_with_names.txt and, in the same order, mos_std.txt:
#
#     5.51429 I01_01_1.bmp
#
# distorted_images/i01_01_1.bmp (scene, distortion, strength), reference_images/I01.BMP. The list and the files differ
# in case, so names are matched in any case. Scene 25 is computer-generated; some papers exclude it.
TID2013 = Task(
    name="tid2013",
    title="TID2013, synthetic distortions",
    kind="full-reference",
    source="tid2013.rar from N. Ponomarenko (ponomarenko.info/tid2013.htm)",
    folder="tid2013",
    files=("mos_with_names.txt", "mos_std.txt"),
    column="MOS",
    scale=(0, 9),
    lower_is_better=False,
    count=3000,
    read=tid_rows,
    fields=Fields(
        image="distorted_images/{image}",
        reference="reference_images/{reference}",
        content="{scene}",
        std="std",
        distortion="{kind}",
        level="{strength}",
        parts=r"/i\d+_(?P<kind>\d+)_0*(?P<strength>[1-9]\d*)\.bmp$",
    ),
    shows_direction=True,
    known=("i01_01_1.bmp", 5.51429),
)

TASKS = by_name(
    LIVE_R2,
    replace(
        LIVE_R2,
        name="live-r2-original",
        title="LIVE release 2, DMOS as first published",
        files=("dmos.mat", "refnames_all.mat"),
        column="dmos",
        scale=(0, 100),
        read=partial(live_r2_rows, variables=("dmos", "orgs", "refnames_all")),
        fields=replace(LIVE_R2.fields, std=None),
    ),
    # 15 references; blur with JPEG (part 1) and blur with noise (part 2), 225 images each. Each part has Imagelists.mat
    # (distimgs and refimgs: cells of names; ref4dist: which reference, from 1) and Scores.mat (DMOSscores):
    #
    #     Part 1/blurjpeg/seals.bmp  Part 1/blurjpeg/seals_blur1_jpeg2.bmp  DMOS 44.3684
    #     Part 2/blurnoise/cows.bmp  Part 2/blurnoise/cows_noise2.bmp       DMOS 30.5556
    #
    # Both parts show the same scenes, so a scene has the same name in both. If a copy has a folder To_Release in
    # between, name that folder with --root.
    Task(
        name="live-md",
        title="LIVE Multiply Distorted",
        kind="full-reference",
        source="the LIVE Multiply Distorted database from LIVE, The University of Texas at Austin "
        "(live.ece.utexas.edu/research/Quality)",
        folder="LIVEmultidistortiondatabase",
        files=tuple(f"{part}/{file}" for part in LIVE_MD_PARTS for file in ("Imagelists.mat", "Scores.mat")),
        column="DMOSscores",
        scale=(0, 100),
        lower_is_better=True,
        count=450,
        read=live_md_rows,
        fields=Fields(
            image="{images}/{distimgs}",
            reference="{images}/{reference}",
            content="{reference}",
            distortion="{kind}",
            level="{strength}",
        ),
        shows_direction=True,
        known=("seals_blur1_jpeg2.bmp", 44.3684),
    ),
    # 30 references, six distortions at four or five strengths each. Sheet all_by_image, from the fourth line and column
    # D on:
    #
    #     image   dst_idx  dst_type  dst_lev  dmos_std  dmos
    #     turtle  ...      contrast  4        ...       0.554236
    #
    # src_imgs/turtle.png, dst_imgs/contrast/turtle.contrast.4.png, dst_imgs/awgn/turtle.AWGN.1.png; the two folders and
    # the sheet are downloaded separately.
    Task(
        name="csiq",
        title="CSIQ, synthetic distortions",
        kind="full-reference",
        source="csiq.DMOS.xlsx, src_imgs.zip and dst_imgs.zip "
        "from E. C. Larson and D. M. Chandler, Oklahoma State Univ.",
        folder="CSIQ",
        files=("csiq.DMOS.xlsx",),
        column="dmos",
        scale=(0, 1),
        lower_is_better=True,
        count=866,
        read=csiq_rows,
        fields=Fields(
            image="dst_imgs/{kind}/{image}.{word}.{strength}.png",
            reference="src_imgs/{image}.png",
            content="{image}",
            std="dmos_std",
            distortion="{kind}",
            level="{strength}",
        ),
        shows_direction=True,
        known=("turtle.contrast.4.png", 0.554236),
    ),
    replace(
        TID2013,
        name="tid2008",
        title="TID2008, synthetic distortions",
        source="tid2008.rar from N. Ponomarenko (ponomarenko.info/tid2008.htm)",
        folder="tid2008",
        count=1700,
        known=None,
    ),
    TID2013,
    # 81 references, 25 distortions at 5 strengths each. kadid10k/dmos.csv; higher is better, despite the column's name:
    #
    #     dist_img,ref_img,dmos,var
    #     I01_01_01.png,I01.png,4.57,0.496
    #     I47_08_05.png,I47.png,1.03,0.18
    #
    # var is a standard deviation, despite its name: 30 ratings from 1 to 5 with a mean of 1.03 are one 2 and 29 times
    # 1, with a variance of .032 and a standard deviation of .18.
    Task(
        name="kadid10k",
        title="KADID-10k, synthetic distortions",
        kind="full-reference",
        source="kadid10k.zip from the University of Konstanz (database.mmsp-kn.de)",
        folder="kadid10k",
        files=("dmos.csv",),
        column="dmos",
        scale=(1, 5),
        lower_is_better=False,
        count=10125,
        read=csv_rows,
        fields=Fields(
            image="images/{dist_img}",
            reference="images/{ref_img}",
            content="{scene}",
            std="var",
            distortion="{kind}",
            level="{strength}",
            parts=r"/(?P<scene>I\d+)_(?P<kind>\d+)_0*(?P<strength>[1-9]\d*)\.",
        ),
        shows_direction=True,
        known=("i01_01_01.png", 4.57),
    ),
    # The training part, which has public labels: 200 references, 116 distorted or restored images of each.
    # Train_Label/A0001.txt, one file per reference; an Elo rating of pairwise comparisons:
    #
    #     A0001_00_00.bmp,1520.0648
    #
    # Train_Ref/A0001.bmp; the images are in Distortion_1 to Distortion_4, by archive. Names hold the reference, the
    # kind of distortion and a running number, which is not a strength, so the direction can't be checked. Elo has no
    # ends: the scale is the range of the training part (916.7 to 1836.0), rounded outwards.
    Task(
        name="pipal",
        title="PIPAL, training part: distorted and restored images",
        kind="full-reference",
        source="the training archives of PIPAL (github.com/HaomingCai/PIPAL-dataset)",
        folder="PIPAL",
        files=("Train_Label",),
        column="Elo",
        scale=(900, 1850),
        lower_is_better=False,
        count=23200,
        read=pipal_rows,
        fields=Fields(
            image="{folder}/{name}",
            reference="Train_Ref/{scene}.bmp",
            content="{scene}",
            distortion="{kind}",
            split="train",
            parts=r"/(?P<scene>A\d+)_(?P<kind>\d+)_\d+\.bmp$",
        ),
        known=("a0001_00_00.bmp", 1520.0648),
    ),
    # LIVE In the Wild Image Quality Challenge: 1162 photos from mobile cameras. The three files of Data are named by
    # their variables: AllImages_release (1169 x 1 cells), AllMOS_release and AllStdDev_release (1 x 1169):
    #
    #     1160.bmp  MOS 21.6859  standard deviation 15.1148
    #
    # The first seven, t1.bmp to t7.bmp in Images/trainingImages, were used to train the raters and are not part of the
    # set. The rest is in Images.
    Task(
        name="clive",
        title="CLIVE (LIVE In the Wild Challenge), photos",
        kind="no-reference",
        source="ChallengeDB_release from LIVE, UT Austin (live.ece.utexas.edu/research/ChallengeDB)",
        folder="ChallengeDB_release",
        files=tuple(f"Data/{name}_release.mat" for name in ("AllImages", "AllMOS", "AllStdDev")),
        column="AllMOS_release",
        scale=(0, 100),
        lower_is_better=False,
        count=1162,
        read=clive_rows,
        fields=Fields(image="Images/{AllImages_release}", std="AllStdDev_release"),
        known=("1160.bmp", 21.6859),
    ),
    # 10073 photos from the web, with the official training, validation and test sets. c1 to c5 are the shares of the
    # votes, MOS is on 0..100, while SD is that of the votes on 1..5 (so there is no standard deviation of the MOS
    # here):
    #
    #     image_name,c1,c2,c3,c4,c5,c_total,MOS,SD,set
    #     10004473376.jpg,0.0,0.0,0.238095,0.695238,0.066667,105,77.3836206897,0.527277894494,training
    #
    # Images are in 1024x768, the size that was rated. The table beside the images,
    # koniq10k_scores_and_distributions.csv, has no sets, and its MOS is on 1..5: it is not read.
    Task(
        name="koniq10k",
        title="KonIQ-10k, photos from the web",
        kind="no-reference",
        source="the 1024x768 images from the University of Konstanz (database.mmsp-kn.de), and "
        "koniq10k_distributions_sets.csv from github.com/subpic/koniq (metadata)",
        folder="koniq10k",
        files=("koniq10k_distributions_sets.csv",),
        column="MOS",
        scale=(0, 100),
        lower_is_better=False,
        count=10073,
        read=koniq10k_rows,
        fields=Fields(image="1024x768/{image_name}", split="{set}"),
        shows_direction=True,
        known=("10004473376.jpg", 77.3836),
        sha256={
            "koniq10k_distributions_sets.csv": "d0bd1ad54a60bc36fe172049e46ac76c83554e50ab84acebfd47b82b3e698a0a",
        },
    ),
    # 11125 photos from 66 smartphones. The header is in the first line:
    #
    #     Image name  MOS   Brightness  Colorfulness  Contrast  Noisiness  Sharpness
    #     11125.jpg   10.8  30.2        43.4          34.6      32.2       8.5
    #
    # Photos are in TestImage, up to 12 megapixels and more. They are measured at full size; papers often scale the
    # shorter side to 512. Scene categories (another sheet) are kinds of scenes, so every photo is a separate scene.
    Task(
        name="spaq",
        title="SPAQ, photos from smartphones",
        kind="no-reference",
        source="SPAQ from github.com/h4nwei/SPAQ",
        folder="SPAQ",
        files=("Annotations/MOS and Image attribute scores.xlsx",),
        column="MOS",
        scale=(0, 100),
        lower_is_better=False,
        count=11125,
        read=partial(sheet_rows, columns=("Image name", "MOS")),
        fields=Fields(image="TestImage/{Image name}"),
        known=("11125.jpg", 10.8),
    ),
    # Blurred Image Database: 586 photos with and without real blur. The first sheet; a copy with DatabaseGrades.xls:
    # save it as .xlsx:
    #
    #     Image Number  Average Subjective Grade  std
    #     1             ...                       ...
    #
    # The photo of number 1 is ImageDatabase/DatabaseImage0001.JPG.
    Task(
        name="bid",
        title="BID, photos with real blur",
        kind="no-reference",
        source="BID from A. Ciancio et al., Universidade Federal do Rio de Janeiro",
        folder="BID",
        files=("DatabaseGrades.xlsx",),
        column="Average Subjective Grade",
        scale=(0, 5),
        lower_is_better=False,
        count=586,
        read=partial(sheet_rows, columns=("Image Number", "Average Subjective Grade", "std")),
        fields=Fields(image="ImageDatabase/DatabaseImage{Image Number:04.0f}.JPG", std="std"),
        known=("databaseimage0005.jpg", 4.200862),
    ),
    # 12000 photos, with the official training and test part. The tables have empty columns behind:
    #
    #     Image Name,MOS,,
    #     ss03 (2898).jpg,0.8089
    #
    # Photos are in Images. As in published figures, every photo counts as a separate scene, though the official parts
    # share scenes: photos named ss01 are series of one scene with different camera settings. Every fifth test photo
    # resembles a training photo: their gray copies of 16 x 16 pixels correlate by .9 or more.
    Task(
        name="biq2021",
        title="BIQ2021, photos",
        kind="no-reference",
        source="BIQ2021 from github.com/nisarahmedrana/BIQ2021",
        folder="BIQ2021",
        files=("Train (Images and MOS).csv", "Test (Images and MOS).csv"),
        column="MOS",
        scale=(0, 1),
        lower_is_better=False,
        count=12000,
        read=partial(csv_rows, splits=("train", "test")),
        fields=Fields(image="Images/{Image Name}", split="{split}"),
        known=("ss03 (2898).jpg", 0.8089),
        sha256={
            "Train (Images and MOS).csv": "1f0c28a28d78903c9064190af8882e03643c9a240bb05ce4f4a4bbe7950ac87e",
            "Test (Images and MOS).csv": "2f8579d5e9647015c9d516613dfd91ec651d74a390a5c6a47a7bbb2e189d157d",
        },
    ),
    # 2982 images that ten settings of six generators made of 300 prompts. data.csv is beside the images; mos_quality is
    # on a scale of 0 to 5; mos_align, how well the image follows the prompt, is not read:
    #
    #     name,prompt,adj1,adj2,style,mos_quality,std_quality,mos_align,std_align
    #     AttnGAN_normal_000.jpg,statue of a man,,,,0.965602553,0.223270101,0.40889324,0.615607722
    #
    # A prompt is a scene. The generator includes its setting. The archive may have a folder around the images, but they
    # are expected beside data.csv.
    Task(
        name="agiqa3k",
        title="AGIQA-3K, generated images",
        kind="AI-generated",
        source="data.csv and the images of github.com/lcysyzxdxc/AGIQA-3k-Database",
        folder="AGIQA-3K",
        files=("data.csv",),
        column="mos_quality",
        scale=(0, 5),
        lower_is_better=False,
        count=2982,
        read=csv_rows,
        fields=Fields(
            image="{name}", content="{prompt}", std="std_quality", generator="{model}", parts=r"^(?P<model>.+)_[^_]+$"
        ),
        known=("attngan_normal_000.jpg", 0.965602553),
        sha256={"data.csv": "311b9c0dc6d8e203fb4b27e070fca6cde87fa3c0dbfb880e197ee1304bba4828"},
    ),
    # 135 images by five generators from 27 prompts, and 11 photos that match the prompts. quality.csv has ratings of
    # image quality on 1..5, images/prompts.csv the prompts:
    #
    #     image_key,rating,std,prompt          ID,prompts,category
    #     craiyon/p03,2.24,0.8306,p03          p03,A blue bird and a brown bear,Drawbench
    #
    # The image of craiyon/p03 is images/craiyon/p03.png. The folder of quality.csv is quality_evaluation, at other
    # commits evaluation_quality_appeal. Ratings of appeal are not read. A prompt is a scene. The generator "own" marks
    # the photos.
    Task(
        name="avt-ai",
        title="AVT-AI, generated images and photos",
        kind="AI-generated",
        source="github.com/Telecommunication-Telemedia-Assessment/avt_ai_images",
        folder="avt_ai_images",
        files=("images/prompts.csv",),
        column="rating",
        scale=(1, 5),
        lower_is_better=False,
        count=146,
        read=avt_ai_rows,
        fields=Fields(
            image="images/{image_key}.png",
            content="{text}",
            std="std",
            generator="{model}",
            parts=r"^images/(?P<model>[^/]+)/",
        ),
        known=("craiyon/p03.png", 2.24),
        sha256=dict.fromkeys(AVT_AI_PLACES, "cef3cbecab1ce31934584717094d3542a8fd42ca753712755647cb6e9435e314"),
    ),
)
