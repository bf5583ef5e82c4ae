# tmvtnorm: maximum likelihood of a Gaussian that was truncated to a box.
#
# mle.tmvnorm computes the probability of the box with random numbers: with 2 000 rows of three columns the
# noise of its log-likelihood has a standard deviation of 0.07. Over a step of 0.001, optim's default, it
# drowns the slope: BFGS, the default method, stops 0.6 to 10 below the maximum, mostly without standard
# errors. L-BFGS-B with steps of 0.03 stops 0.1 to 2 below it on six tables that are none of the
# comparison's; longer steps, BFGS, CG and Nelder-Mead do worse.

here <- sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE)[1])
source(file.path(dirname(gsub("~+~", " ", here, fixed = TRUE)), "harness.R"))
suppressPackageStartupMessages(library(tmvtnorm))

difference_step <- 0.03

estimate <- function(table, options) {
  d <- table$d
  stopifnot(identical(table$task$set, "box"))
  set.seed(table$seed)
  fit <- mle.tmvnorm(
    table$read("values"),
    lower = rep(0, d),
    method = "L-BFGS-B",
    control = list(ndeps = rep(difference_step, d * (d + 3) / 2))
  )
  # Where the Hessian has the wrong sign there is no standard error: NaN.
  error <- suppressWarnings(sqrt(diag(vcov(fit))))
  # Parameters are mu_1, ..., then sigma_1.1, sigma_1.2, ...: the triangle by rows, one for each pair.
  places <- matrix(0, d, d)
  places[lower.tri(places, diag = TRUE)] <- d + seq_len(d * (d + 1) / 2)
  places <- pmax(places, t(places))
  covariance <- matrix(coef(fit)[places], d)
  list(
    mean = coef(fit)[1:d],
    covariance = covariance,
    mean_interval = wald(coef(fit)[1:d], error[1:d], table$task$level),
    covariance_interval = wald(covariance, matrix(error[places], d), table$task$level)
  )
}

answer_all(estimate, "tmvtnorm")
