"""Whether an explanation that was found on small cases holds on the large ones, which a search would take too long on.

Values are those of the variant; of gradients, slopes along a few random directions are compared, since a variant has
its gradient entry by entry.
"""

from collections.abc import Sequence
from dataclasses import replace

from nceref.diagnosis.case import CaseAnalysis
from nceref.diagnosis.explanation import Explanation, variant_value
from nceref.diagnosis.gradient_fit import GradientFit, judged_gradients
from nceref.diagnosis.gradient_patterns import WRONG
from nceref.diagnosis.gradients import patterns


def on_all(
    explanation: Explanation, small: Sequence[CaseAnalysis], large: Sequence[CaseAnalysis]
) -> Explanation | None:
    """The explanation, with all cases counted; None where a value or a gradient of a large case is not predicted.

    `explanation`: of the small cases. Result: beside a convention of the value, patterns that were read off a gradient
    itself, such as a factor, are not looked at on large cases.
    """
    if not all(_value_fits(explanation, analysis) for analysis in large):
        return None
    counted = replace(explanation, of=explanation.of + len(large))
    if not explanation.value_options and explanation.gradient_words:
        ids, words = patterns([*small, *large])
        same = WRONG in ids if WRONG in explanation.ids else {*ids} == {*explanation.ids}
        return replace(counted, gradient_words=words) if same else None
    # What was read off a gradient is no step of a dense form.
    if not explanation.gradient or any(option.axis == "gradient-factor" for option in explanation.options):
        return counted
    fit = GradientFit(explanation.options, [one for analysis in large for one in judged_gradients(analysis)])
    return counted if all(map(fit.fits, fit.judged)) else None


def _value_fits(explanation: Explanation, analysis: CaseAnalysis) -> bool:
    # As on the small cases: a constant carries the error of the case that it was read off.
    fitted = sum(option.id.endswith("-constant") for option in explanation.options)
    value, allowed = variant_value(analysis, explanation.value_options)
    return analysis.misfit(value, (1 + fitted) * allowed) <= 1
