# OpenMx: full-information maximum likelihood of a saturated model, continuous and ordinal jointly.
#
# Each column is in the table twice: as it was seen (NA where hidden), and as an ordinal twin that has the
# same mean and covariances (NA where seen) and says between which limits a hidden value lies. In no row
# are both there, so the covariance of what a row has is of full rank. Thresholds are fixed at the limits;
# where limits differ by row they are definition variables.
#
# Conditioned on the continuous part the likelihood is exact, up to its integrals. The other way round,
# which is what "auto" takes where there are few patterns, it is not: at three columns and 1 000 rows it is
# off by 2 to 3, and estimates by up to half a standard error.

here <- sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE)[1])
source(file.path(dirname(gsub("~+~", " ", here, fixed = TRUE)), "harness.R"))
suppressPackageStartupMessages(library(OpenMx))

estimate <- function(table, options) {
  d <- table$d
  values <- table$read("values")
  seen <- paste0("seen", 1:d)
  twin <- paste0("twin", 1:d)
  limits <- if (table$task$kind == "limits") limits_of_columns(table) else limits_of_rows(table)
  columns <- c(setNames(as.data.frame(values), seen), setNames(limits$twins, twin), limits$more)
  model <- mxModel(
    "saturated",
    mxMatrix("Full", 1, d, TRUE, colMeans(values, na.rm = TRUE), paste0("mean", 1:d), name = "M"),
    covariance_matrix(values),
    limits$matrix,
    mxAlgebra(cbind(M, M), name = "means"),
    mxAlgebra(rbind(cbind(S, S), cbind(S, S)), name = "covariances"),
    mxExpectationNormal("covariances", "means", c(seen, twin), "limits", twin),
    mxFitFunctionML(jointConditionOn = "continuous"),
    mxData(as.data.frame(columns), type = "raw")
  )
  fit <- mxRun(model, silent = TRUE)
  error <- c(fit$output$standardErrors)
  # None at all where the Hessian could not be had.
  if (is.null(error)) error <- rep(NA_real_, length(coef(fit)))
  names(error) <- names(coef(fit))
  list(
    mean = drop(fit$M$values),
    covariance = fit$S$values,
    mean_interval = wald(drop(fit$M$values), error[fit$M$labels], table$task$level),
    covariance_interval = wald(fit$S$values, matrix(error[fit$S$labels], d), table$task$level)
  )
}

# Thresholds are numbers. A twin's level is the number of limits below a hidden value.
limits_of_columns <- function(table) {
  limits <- rbind(table$task$lower_limits, table$task$upper_limits)
  lower <- table$read("lower")
  level <- matrix(0, table$n, table$d)
  for (row in seq_len(nrow(limits))) level <- level + sweep(lower, 2, limits[row, ], ">=")
  list(
    matrix = mxMatrix("Full", nrow(limits), table$d, FALSE, limits, name = "limits"),
    twins = twins(table, level, nrow(limits))
  )
}

# One threshold for each cell, a column of the table; every hidden value is below its own. Where a cell
# is seen there is no twin to compare with it, and any number will do.
limits_of_rows <- function(table) {
  stopifnot(all(table$read("lower")[is.na(table$read("values"))] == -Inf))
  names <- paste0("limit", 1:table$d)
  list(
    matrix = mxMatrix("Full", 1, table$d, FALSE, labels = paste0("data.", names), name = "limits"),
    twins = twins(table, matrix(0, table$n, table$d), 1),
    more = setNames(as.data.frame(table$read("upper")), names)
  )
}

twins <- function(table, level, limits) {
  level[!is.na(table$read("values"))] <- NA
  lapply(as.data.frame(level), mxFactor, levels = 0:limits)
}

# Start from what is seen, with correlations halved: pairs of columns need not agree on a matrix that is
# positive definite, and it must be one.
covariance_matrix <- function(values) {
  d <- ncol(values)
  start <- cov(values, use = "pairwise.complete.obs") * (1 + diag(d)) / 2
  labels <- outer(1:d, 1:d, function(i, j) paste0("covariance", pmin(i, j), "_", pmax(i, j)))
  bound <- ifelse(diag(d) == 1, 1e-6, NA)
  mxMatrix("Symm", d, d, TRUE, start, labels, bound, name = "S")
}

answer_all(estimate, "OpenMx")
