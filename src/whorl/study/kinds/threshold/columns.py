"""The tables of the threshold study, and what their columns mean."""

from whorl.study.columns import BETA, DEPTH, FAMILY, PLACE, TASKS, VECTORS, WEIGHT, described

COLUMNS = described(f"""
tasks
{FAMILY}{TASKS}
weights
{FAMILY}{DEPTH}{BETA}{PLACE}{WEIGHT}
configurations
{FAMILY}{DEPTH}{BETA}
selected | computed | int64 | Eq. 27 | sample with the largest residual
displacement | computed | float64 | Eq. 25 | squared first-order displacement, all samples
bending | computed | float64 | Eq. 25 | second-order displacement along the residual, all samples
selected_displacement | computed | float64 | Eq. 27 | squared displacement of the selected sample
selected_bending | computed | float64 | Eq. 27 | bending of the selected sample
condition | computed | float64 | Supplement IV | condition number of the selected response
{VECTORS}
loss_plus | computed | float64 | Eq. 24 | mean loss after the step with a turn
loss_minus | computed | float64 | Eq. 24 | mean loss after the step with the opposite turn
loss_still | computed | float64 | Eq. 24 | mean loss after the step without a turn
back_plus | computed | float64 | Eq. 24 | the same with the step reversed: turn
back_minus | computed | float64 | Eq. 24 | step reversed: opposite turn
back_still | computed | float64 | Eq. 24 | step reversed: no turn
coefficient | derived | float64 | Eq. 25 | the finite-step coefficient of all samples
ratio | derived | float64 | Eq. 27 | the selected sample's curvature ratio
favourable | derived | int64 | Eq. 25 | 1 where the coefficient is negative
predicted | derived | int64 | Eq. 27 | 1 where the ratio exceeds one
finite | derived | float64 | Eq. 24 | the coefficient from finite steps both ways
coefficient_residual | derived | float64 | Eq. 24 | relative distance of the two coefficients
response_residual | derived | float64 | Eq. 21 | distance of the velocity from the commanded one
column_residual | derived | float64 | Eq. 3 | largest distance of a column sum from one
draws
draw | key | int64 | Supplement IV | number of the resample of families
auc | derived | float64 | Sec. VII B | area under the ROC curve
accuracy | derived | float64 | Sec. VII B | share of right predictions
favourable_first | derived | float64 | Sec. VII B | favourable share at the first imbalance
favourable_last | derived | float64 | Sec. VII B | favourable share at the last imbalance
""")
