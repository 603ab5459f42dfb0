"""TID2008: 25 references, 17 distortions at four levels each, in the form of TID2013 (``tid2013.py``)::

6.6000 i20_09_1.bmp
"""

from dataclasses import replace

from agenticiqa.eval.tasks.tid2013 import TID2013

TID2008 = replace(
    TID2013,
    name="tid2008",
    title="TID2008, synthetic distortions",
    source="tid2008.rar from N. Ponomarenko (ponomarenko.info/tid2008.htm)",
    folder="tid2008",
    count=1700,
)
