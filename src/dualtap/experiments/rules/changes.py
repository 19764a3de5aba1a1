"""Rules that are not what they were when quick runs were first judged by them, and why."""

from dualtap.experiments.rules.rule import Change

CHANGES = (
    Change(
        "fig3.turn",
        "the same share over all M together",
        "one M at which it fails should not be hidden by the others",
    ),
    Change(
        "fig3.kink",
        "the share over all M together, of the gains on the deflated J alone",
        "the paper speaks of L̂ itself, whose increments are not these gains",
    ),
    Change(
        "fig4.inside",
        "the error wherever samples keep an overlap above 0.6 with a pattern",
        "samples stay near a pattern where it is only metastable: the phase is that of replica "
        "theory, T < T_R",
    ),
    Change(
        "fig4.outside",
        "the error above 0.5 wherever samples keep no overlap above 0.6 with a pattern",
        "the phases are those of replica theory; between T_R and T_M patterns are metastable, and "
        "are judged by themselves",
    ),
    Change(
        "fig4.stop",
        "the same share wherever samples keep an overlap above 0.6 with a pattern",
        "the phase is that of replica theory, T < T_R",
    ),
    Change(
        "fig5.tap",
        "every trial",
        "with more trials one exception does not refute what 95 % show",
    ),
    Change(
        "fig6.modes",
        "every trial",
        "with more trials one exception does not refute what 95 % show",
    ),
    Change(
        "fig7.tap",
        "every trial",
        "with more trials one exception does not refute what 99 % show",
    ),
    Change(
        "fig7.amp",
        "every trial",
        "with more trials one exception does not refute what 99 % show",
    ),
    Change(
        "fig8.amp",
        "runs of AMP with m damped that reach a pattern, at P/N = 0.01, N = 1000, any temperature",
        "with the field damped it comes out; that reading is judged, and the printed one by itself",
    ),
    Change(
        "fig8.opper_winther",
        "the mean P_c below T_R at P/N = 0.01, all N together",
        "a load or a size at which it falls behind should not be hidden by the others",
    ),
    Change(
        "theory2.tap",
        "the factor along λ = 0 below that of the patterns or below 1",
        "what is said is that it is below that of the patterns; near β = 1 it is not",
    ),
    Change(
        "theory3.capacity",
        "the same, as a claim of the paper",
        "the paper does not print these numbers",
    ),
    Change(
        "pairs.pseudo_likelihood",
        "errors compared with λ chosen by the truth alone",
        "the better of both choices of λ is the stronger rival",
    ),
)
